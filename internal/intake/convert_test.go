package intake

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func convertText(t *testing.T, text string, keep ...string) (string, *Conversion) {
	t.Helper()
	var out bytes.Buffer
	c, err := Convert(context.Background(), ConvertConfig{Paths: []string{"-"}, Stdin: strings.NewReader(text), Keep: keep}, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), c
}

// Case 15: sorted, put together, the query as it was, responses and what is refused counted.
func TestConvertGoReplayOutOfOrder(t *testing.T) {
	const end = "\n\U0001f435\U0001f648\U0001f649\n"
	out, c := convertText(t, "1 a1 1700000000200000000 0\nGET /b?x=a%2520b HTTP/1.1\r\nHost: shop.example\r\n\r\n"+end+
		"2 a1 1700000000210000000 9000\nHTTP/1.1 200 OK\r\n\r\n"+end+
		"1 a2 1700000000100000000 0\nPOST /form HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n7\r\na=1&b=2\r\n0\r\n\r\n"+end+
		"1 a3 1700000000300000000 0\nGET "+end)
	want := `{"url":"/form","method":"POST","timestamp":"2023-11-14T22:13:20.1Z","headers":{"Host":"shop.example"},"body":"a=1&b=2"}` + "\n" +
		`{"url":"/b?x=a%2520b","method":"GET","timestamp":"2023-11-14T22:13:20.2Z","headers":{"Host":"shop.example"}}` + "\n"
	if out != want || c.Written != 2 || c.OutOfOrder != 1 || c.Late != 0 || c.Skips.Unparsable != 1 || c.Skips.Reasons["a response"] != 1 {
		t.Errorf("%+v %+v\n%s", c, c.Skips, out)
	}
}

func TestConvertLeavesCredentialsOut(t *testing.T) {
	const line = `{"url":"/","timestamp":"2024-01-01T00:00:00Z","client":"192.0.2.1","headers":{"AUTHORIZATION":"a","cookie":"b","X-Api-Key":"c","Proxy-Authorization":"d","Accept":"e"}}`
	out, c := convertText(t, line, "x-api-key")
	if strings.Contains(out, "192.0.2.1") || !strings.Contains(out, `"headers":{"X-Api-Key":"c","Accept":"e"}}`) || len(c.Dropped) != 3 || c.Clients != 1 {
		t.Errorf("%+v\n%s", c, out)
	}
}

// What no line can hold is refused by where it stood, and what is past sorting is told.
func TestConvertBounds(t *testing.T) {
	var in strings.Builder
	for range 40 {
		in.WriteString(`{"url":"/","timestamp":"2024-01-01T00:00:01Z","body":"` + strings.Repeat("x", 1<<20-200) + "\"}\n")
	}
	in.WriteString(`{"url":"/late","timestamp":"2024-01-01T00:00:00Z"}` + "\n")
	in.WriteString(`{"url":"/big","timestamp":"2024-01-01T00:00:02Z","body":"` + strings.Repeat("\x7f", 1<<19) + "\"}\n")
	_, c := convertText(t, in.String())
	if c.Written != 41 || c.Late != 1 || c.Skips.Unparsable != 1 || c.Skips.First[0].Line != 42 {
		t.Errorf("%+v %+v", c, c.Skips)
	}
}
