package manifest

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// checkRoundTrip reads back what Explain writes and compares the effective values.
func checkRoundTrip(t *testing.T, m *Manifest) {
	t.Helper()
	var out bytes.Buffer
	if err := m.Explain(&out); err != nil {
		t.Fatal(err)
	}
	back, err := Parse(out.Bytes(), m.Dir)
	if err != nil {
		t.Fatalf("what Explain wrote is refused: %v\n%s", err, out.String())
	}
	if strings.Contains(out.String(), "(masked)") {
		return
	}
	var again bytes.Buffer
	if err := back.Explain(&again); err != nil {
		t.Fatal(err)
	}
	strip := func(b string) (lines []string) {
		for line := range strings.Lines(b) {
			value, _, _ := strings.Cut(line, " # ")
			if value = strings.TrimRight(value, " \n"); !strings.HasPrefix(strings.TrimSpace(value), "#") {
				lines = append(lines, value)
			}
		}
		return lines
	}
	if a, b := strip(out.String()), strip(again.String()); !reflect.DeepEqual(a, b) {
		t.Fatalf("not the same after reading back:\n%s\n---\n%s", out.String(), again.String())
	}
}

func TestExplain(t *testing.T) {
	m := mustParse(t, `services:
  web:
    run: "serve ${PORT}"
    env: {API_TOKEN: canary-1, MODE: test}
load:
  source: access_log
  source_config: {path: "logs/*.log"}
  headers: {X-Api-Key: canary-2, Accept: "*/*"}
  auth: {bearer: {env: TOKEN}}
  safe_routes: ["GET /**"]
  params: {"GET /o/{id}": {id: {int: {min: 1, max: 9}}}}
`, Override{"load.scale", "0.5", "--scale"})
	var out bytes.Buffer
	if err := m.Explain(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"scale: 0.5", "# flag --scale", "# seatrial.yaml:6:3", "duration: 1m", "# default: a smoke takes 10s",
		"# p95_increase: not in force: source access_log carries no durations", "error_rate: 0.01", `- "GET /**"`,
		"name: shop", "# default: the folder's name", "target: web", "# default: the only one", "MODE: test",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from:\n%s", want, text)
		}
	}
	if strings.Contains(text, "canary") {
		t.Errorf("a secret is shown:\n%s", text)
	}
	checkRoundTrip(t, m)
}
