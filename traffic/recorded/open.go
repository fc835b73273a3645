package recorded

import (
	"bytes"
	"strings"

	"seatrial/fault"
	"seatrial/traffic/input"
)

// Formats lists the formats that are read, as a user writes them. ripley's JSON Lines are also those
// that NewWriter writes.
func Formats() []string {
	return []string{"ripley", "goreplay", "har", "vegeta", "postman", "k6", "linkerd"}
}

// Open reads the inputs of set as recorded requests. An empty format is recognised by the content of the
// first input that is not empty; Skipped tells what was chosen. A format that is not read, a program in
// place of data, and content that is none of the formats are TRF-004.
func Open(set *input.Set, format string) (Source, error) {
	head, err := set.Peek(4096)
	if err != nil {
		return nil, err
	}
	if format == "" {
		if format = Recognise(head); format == "" {
			return nil, unknown(set, head)
		}
	}
	r := newReader(set, format)
	switch format {
	case "ripley", "linkerd":
		return newLines(r, format), nil
	case "vegeta":
		if first(head) == '{' {
			return newLines(r, format), nil
		}
		return newVegeta(r), nil
	case "goreplay", "gor":
		r.format = "goreplay"
		return newGoReplay(r), nil
	case "har", "postman", "k6":
		return newDocument(r, format), nil
	}
	return nil, fault.New(fault.TRF004, "%q is no format of recorded requests; %s are", format, strings.Join(Formats(), ", "))
}

// unknown says that the content is none of the formats.
func unknown(set *input.Set, head []byte) error {
	if isScript(head) {
		return fault.New(fault.TRF004, "%s is a k6 script, a program and not data: it cannot be converted", set).
			WithNext("Write its requests as a JSON array of {\"method\", \"url\", \"headers\", \"body\"}, which the format k6 reads; its rate, duration and thresholds belong into seatrial.yaml.")
	}
	return fault.New(fault.TRF004, "%s is not recognised as recorded requests; %s are", set, strings.Join(Formats(), ", ")).
		WithNext("Name the format with --format; access logs and traces are read by `seatrial traffic record`.")
}

func isScript(head []byte) bool {
	for _, mark := range [...]string{"'k6/", `"k6/`, "from 'k6'", `from "k6"`, "export default function"} {
		if bytes.Contains(head, []byte(mark)) {
			return true
		}
	}
	return false
}

var bom = []byte("\xef\xbb\xbf")

func first(head []byte) byte {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
	if len(head) == 0 {
		return 0
	}
	return head[0]
}

// Recognise names the format of what starts with head; empty when it is none.
func Recognise(head []byte) string {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
	switch {
	case len(head) == 0:
		return "ripley" // an empty input is told as one
	case bytes.Contains(head, []byte(separator)), isMeta(firstLine(head)):
		return "goreplay"
	case isScript(head):
		return ""
	case head[0] == '[':
		return "k6"
	case head[0] == '{':
		return recogniseObject(head)
	}
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		if _, _, ok := target(line); ok {
			return "vegeta"
		}
		return ""
	}
	return ""
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

// recogniseObject tells JSON Lines, by the keys of their first lines, from documents of one object.
func recogniseObject(head []byte) string {
	has := func(key string) bool { return bytes.Contains(head, []byte(`"`+key+`"`)) }
	lines, vegeta := 0, 0
	for line := range bytes.Lines(head) {
		if checkJSON(line) != "" {
			continue
		}
		url, at := find(line, "url"), find(line, "timestamp")
		switch {
		case url != nil && at != nil:
			return "ripley"
		case find(line, "uri") != nil && at != nil:
			return "linkerd"
		case url != nil:
			vegeta++
		}
		lines++
	}
	switch {
	case vegeta > 0:
		return "vegeta"
	case has("log") && (has("entries") || has("creator")):
		return "har"
	case bytes.Contains(head, []byte("getpostman.com")) || has("_postman_id") || has("item") || has("requests") || has("order"):
		return "postman"
	case has("url") && has("timestamp"):
		return "ripley" // its first line is longer than the head
	}
	return ""
}
