package traffic

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)

// seen makes an event of a path, with nothing else known.
func seen(method, path string) Event {
	return Event{Method: []byte(method), Path: []byte(path), Duration: -1, RequestSize: -1, ResponseSize: -1, Status: 200}
}

func build(t testing.TB, cfg BuilderConfig, events []Event) (*Profile, *Observed) {
	t.Helper()
	b, err := NewBuilder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		b.Add(&events[i])
	}
	p, o, err := b.Finish(&Skips{Format: "test", Read: int64(len(events))}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

func names(p *Profile) []string {
	out := make([]string, len(p.Routes))
	for i := range p.Routes {
		out[i] = p.Routes[i].Name()
	}
	return out
}

func route(t testing.TB, p *Profile, name string) *Route {
	t.Helper()
	for i := range p.Routes {
		if p.Routes[i].Name() == name {
			return &p.Routes[i]
		}
	}
	t.Fatalf("no route %q among %q", name, names(p))
	return nil
}

// combined reads a well-formed combined log; the real parser is tested where it lives.
func combined(t testing.TB, name string) []Event {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", "access", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []Event
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		_, after, ok := strings.Cut(s.Text(), "[")
		stamp, after, ok2 := strings.Cut(after, `] "`)
		request, after, ok3 := strings.Cut(after, `" `)
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
		words := strings.Fields(request)
		if !ok || !ok2 || !ok3 || err != nil || len(words) < 2 {
			t.Fatalf("line %q", s.Text())
		}
		var status int
		if _, err := fmt.Sscan(after, &status); err != nil {
			t.Fatal(err)
		}
		e := seen(words[0], words[1])
		e.UnixNano, e.Status = at.UnixNano(), status
		out = append(out, e)
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return out
}
