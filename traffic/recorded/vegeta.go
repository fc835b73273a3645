package recorded

import (
	"bytes"
	"errors"
	"io"
	"os"

	"seatrial/traffic/input"
)

// vegeta reads targets in Vegeta's text format: a line of method and URL, its headers, and a file whose
// content is the body.
type vegeta struct {
	reader
	in   *input.Lines
	held bool // the current line is still to be read
}

func newVegeta(r reader) *vegeta {
	v := &vegeta{reader: r, in: input.NewLines(r.set)}
	v.decode = v.next
	return v
}

// target splits a line of method and URL.
func target(line []byte) (method, url []byte, ok bool) {
	method, url, ok = bytes.Cut(line, []byte(" "))
	url = bytes.TrimSpace(url)
	for _, c := range method {
		ok = ok && c-'A' <= 'Z'-'A'
	}
	if !ok || len(method) == 0 {
		return nil, nil, false
	}
	return method, url, bytes.HasPrefix(url, []byte("/")) || bytes.Contains(url, []byte("://"))
}

// line gives the next line; false at the end of the inputs.
func (v *vegeta) line() ([]byte, bool) {
	if !v.held && !v.in.Next() {
		return nil, false
	}
	v.held = false
	line := bytes.TrimSpace(v.in.Bytes())
	if v.in.Number() == 1 {
		line = bytes.TrimPrefix(line, bom)
	}
	return line, true
}

func (v *vegeta) next() step {
	line, ok := v.line()
	if !ok {
		return ended
	}
	number := v.in.Number()
	if number == 1 {
		v.enter(v.in.Input())
	}
	switch {
	case v.in.Fault() != "":
		v.refuse(number, v.in.Fault())
		return passed
	case len(line) == 0:
		v.skips.Blank++
		return passed
	case line[0] == '#':
		v.skips.Comment++
		return passed
	}
	method, url, ok := target(line)
	v.reset(number)
	v.req.Method, v.req.URL = v.keep(method), v.keep(url)
	why := v.rest()
	if !ok {
		why = "no line of a method and a URL"
	}
	if why != "" {
		v.refuse(number, why)
		return passed
	}
	return found
}

// rest reads what belongs to the current target, up to a blank line, the next target or the end.
func (v *vegeta) rest() (why string) {
	for {
		line, ok := v.line()
		if !ok {
			return why
		}
		_, _, another := target(line)
		switch {
		case v.in.Number() == 1 || another || v.in.Fault() != "":
			v.held = true
			return why
		case len(line) == 0:
			v.skips.Blank++
			return why
		case line[0] == '#':
			v.skips.Comment++
		case why != "":
		case line[0] == '@':
			v.req.Body, why = v.file(string(line[1:]))
		default:
			name, value, ok := bytes.Cut(line, []byte(":"))
			if !ok || !isToken(name) {
				why = "a malformed header"
				continue
			}
			v.field(name, value)
		}
	}
}

// file reads a body. Its path is relative to the folder of the targets, and must stay within it: a list of
// targets from elsewhere must not put this machine's files into requests.
func (v *vegeta) file(path string) (body []byte, why string) {
	folder := v.set.Folder()
	if folder == "" {
		return nil, "a body file beside standard input, which has no folder"
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "a body file that cannot be read"
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, "a body file that does not exist"
	case err != nil:
		return nil, "a body file outside the folder of the targets, or one that cannot be read"
	case !info.Mode().IsRegular():
		return nil, "a body file that is no regular file"
	case info.Size() > MaxBody:
		return nil, longBody
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, "a body file that cannot be read"
	}
	body, err = io.ReadAll(io.LimitReader(f, MaxBody+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, "a body file that cannot be read"
	}
	return body, ""
}
