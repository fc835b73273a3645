package httpload

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Expect is what a complete and valid response must be besides. It is built once by NewExpect, shared
// by all requests of a route, and never changed. A response that is something else is a CheckFailed.
type Expect struct {
	status   []uint16
	fields   []FieldExpect
	contains []needle
	min, max int64
}

// Expectation is what NewExpect takes. Whatever is zero is not looked at.
type Expectation struct {
	Status   []int // any of these
	Fields   []FieldExpect
	Contains []string // each must occur in the body, as it is sent: no coding is undone
	MinBytes int64    // of the body
	MaxBytes int64    // 0: no bound but MaxBody
}

// FieldExpect is what one header field must hold.
type FieldExpect struct {
	Name     string // in any case
	Equals   string // one of the field's lines is this, white space around it aside; empty: not looked at
	Contains string // one of the field's lines holds this; empty: not looked at
}

// maxFieldChecks is how many fields one expectation may name.
const maxFieldChecks = 64

// needle is a text that is searched in a stream (Knuth, Morris and Pratt 1977).
type needle struct {
	text []byte
	back []int32 // length of the longest proper border of text[:i+1]
}

// NewExpect checks and prepares an expectation. All problems are returned at once.
func NewExpect(x Expectation) (*Expect, error) {
	var errs []error
	e := &Expect{min: x.MinBytes, max: x.MaxBytes, fields: slices.Clone(x.Fields)}
	for _, s := range x.Status {
		if s < 200 || s > 599 {
			errs = append(errs, fmt.Errorf("httpload: %d is no final status", s))
			continue
		}
		e.status = append(e.status, uint16(s))
	}
	if len(x.Fields) > maxFieldChecks {
		errs = append(errs, fmt.Errorf("httpload: %d header fields are expected; at most %d", len(x.Fields), maxFieldChecks))
	}
	for i, f := range e.fields {
		if f.Name == "" || strings.IndexFunc(f.Name, func(r rune) bool { return r > 0x7f || !token(byte(r)) }) >= 0 {
			errs = append(errs, fmt.Errorf("httpload: %q is no header name", f.Name))
		}
		e.fields[i].Name = strings.ToLower(f.Name)
	}
	for _, s := range x.Contains {
		if s == "" {
			errs = append(errs, errors.New("httpload: the text that a body must contain is empty"))
			continue
		}
		e.contains = append(e.contains, newNeedle(s))
	}
	if x.MinBytes < 0 || x.MaxBytes < 0 || x.MaxBytes > 0 && x.MaxBytes < x.MinBytes {
		errs = append(errs, fmt.Errorf("httpload: no body is between %d and %d bytes long", x.MinBytes, x.MaxBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e, nil
}

func newNeedle(s string) needle {
	n := needle{text: []byte(s), back: make([]int32, len(s))}
	for i, k := 1, int32(0); i < len(s); i++ {
		for k > 0 && s[i] != s[k] {
			k = n.back[k-1]
		}
		if s[i] == s[k] {
			k++
		}
		n.back[i] = k
	}
	return n
}

// checker compares one response with an expectation while it comes in. It keeps nothing of it. Its
// buffers are reused.
type checker struct {
	want *Expect
	seen uint64  // bit i: fields[i] was right
	at   []int32 // of each text: how much of it has matched; its length once it was found
	body int64
}

// reset prepares for a response; with nil nothing is looked at.
func (c *checker) reset(want *Expect) {
	if c.want = want; want == nil {
		return
	}
	c.seen, c.body, c.at = 0, 0, c.at[:0]
	for range want.contains {
		c.at = append(c.at, 0)
	}
}

// field looks at one header field of the final response.
func (c *checker) field(name, value []byte) {
	if c.want == nil {
		return
	}
	for i := range c.want.fields {
		f := &c.want.fields[i]
		if !equalFold(name, f.Name) {
			continue
		}
		value := bytes.TrimSpace(value)
		if (f.Equals == "" || string(value) == f.Equals) && (f.Contains == "" || bytes.Contains(value, []byte(f.Contains))) {
			c.seen |= 1 << i
		}
	}
}

// data looks at a piece of the body.
func (c *checker) data(b []byte) {
	if c.want == nil {
		return
	}
	c.body += int64(len(b))
	for i := range c.want.contains {
		c.at[i] = c.want.contains[i].search(b, c.at[i])
	}
}

// search goes on at k matched bytes and gives how many have matched behind b.
func (n *needle) search(b []byte, k int32) int32 {
	if int(k) == len(n.text) {
		return k
	}
	for len(b) > 0 {
		if k == 0 { // the fast way to a place where it may begin
			i := bytes.IndexByte(b, n.text[0])
			if i < 0 {
				return 0
			}
			b = b[i:]
		}
		c := b[0]
		for k > 0 && c != n.text[k] {
			k = n.back[k-1]
		}
		if c == n.text[k] {
			k++
		}
		if int(k) == len(n.text) {
			return k
		}
		b = b[1:]
	}
	return k
}

// named tells whether the expectation names the statuses that are right.
func (c *checker) named() bool { return c.want != nil && len(c.want.status) > 0 }

// wrong says what of the complete response was not as expected; nil when all was. It holds nothing of what
// the response itself carried but its status and length.
func (c *checker) wrong(status int) error {
	w := c.want
	switch {
	case w == nil:
		return nil
	case len(w.status) > 0 && !slices.Contains(w.status, uint16(status)):
		return fmt.Errorf("status %d, which is not expected", status)
	case c.body < w.min:
		return fmt.Errorf("a body of less than %d bytes", w.min)
	case w.max > 0 && c.body > w.max:
		return fmt.Errorf("a body of more than %d bytes", w.max)
	}
	for i, f := range w.fields {
		if c.seen&(1<<i) == 0 {
			return fmt.Errorf("the header field %s is not as expected", f.Name)
		}
	}
	for i, n := range c.at {
		if int(n) < len(w.contains[i].text) {
			return fmt.Errorf("text %d of body_contains is not in the body", i+1)
		}
	}
	return nil
}
