package recorded

import (
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"seatrial/traffic/input"
)

// Writer writes requests as JSON Lines: ripley's keys in a fixed order, body_base64 in place of body for
// what is not UTF-8, and client. The same requests give the same bytes.
type Writer struct {
	w   io.Writer
	buf []byte
}

// NewWriter writes to w, one Write for each request.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one request. One that a line cannot hold gives a *Unwritable, and nothing is written.
func (w *Writer) Write(q *Request) error {
	line, err := AppendLine(w.buf[:0], q)
	if err != nil {
		return err
	}
	w.buf = line
	_, err = w.w.Write(line)
	return err
}

// Unwritable tells why a line cannot hold a request.
type Unwritable struct{ Reason string }

// Error implements error.
func (u *Unwritable) Error() string {
	return fmt.Sprintf("the request cannot be written: %s", u.Reason)
}

// AppendLine appends a request's line with its end to dst. It fails only with a *Unwritable.
func AppendLine(dst []byte, q *Request) ([]byte, error) {
	from := len(dst)
	if why := textual(q); why != "" {
		return dst, &Unwritable{why}
	}
	dst = appendText(append(dst, `{"url":`...), q.URL)
	dst = appendText(append(dst, `,"method":`...), q.Method)
	if q.UnixNano == 0 {
		dst = append(dst, `,"timestamp":null`...)
	} else {
		dst = append(dst, `,"timestamp":"`...)
		dst = append(time.Unix(0, q.UnixNano).UTC().AppendFormat(dst, time.RFC3339Nano), '"')
	}
	dst = appendHeaders(dst, q.Header)
	if len(q.Body) > 0 && utf8.Valid(q.Body) {
		dst = appendText(append(dst, `,"body":`...), q.Body)
	} else if len(q.Body) > 0 {
		dst = append(dst, `,"body_base64":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, q.Body), '"')
	}
	if len(q.Client) > 0 {
		dst = appendText(append(dst, `,"client":`...), q.Client)
	}
	dst = append(dst, "}\n"...)
	if len(dst)-from > input.MaxLine {
		return dst[:from], &Unwritable{"its line would be longer than 1 MiB"}
	}
	return dst, nil
}

// textual tells what of a request is no text of JSON, and has no place but there.
func textual(q *Request) string {
	switch {
	case !utf8.Valid(q.URL) || !utf8.Valid(q.Method):
		return "a URL that is not UTF-8"
	case !utf8.Valid(q.Client):
		return "a client that is not UTF-8"
	}
	for _, f := range q.Header {
		if !utf8.ValidString(f.Name) || !utf8.ValidString(f.Value) {
			return "a header that is not UTF-8"
		}
	}
	return ""
}

// appendHeaders writes fields in order; those of one name are a list in the place of the first.
func appendHeaders(dst []byte, header []Field) []byte {
	if len(header) == 0 {
		return dst
	}
	dst = append(dst, `,"headers":`...)
	open := byte('{')
	for i, f := range header {
		same := func(g Field) bool { return g.Name == f.Name }
		if slices.ContainsFunc(header[:i], same) {
			continue
		}
		dst = append(appendText(append(dst, open), f.Name), ':')
		open = ','
		if !slices.ContainsFunc(header[i+1:], same) {
			dst = appendText(dst, f.Value)
			continue
		}
		mark := byte('[')
		for _, g := range header[i:] {
			if same(g) {
				dst = appendText(append(dst, mark), g.Value)
				mark = ','
			}
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendText writes a JSON string, escaping no more than it must.
func appendText[T []byte | string](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
