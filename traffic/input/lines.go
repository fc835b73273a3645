package input

import "bytes"

// MaxLine is the longest line, in bytes, that is given whole. Of a longer one nothing is given.
const MaxLine = 1 << 20

// lineBuffer is the buffer that lines are cut from, in bytes; it grows to MaxLine only for long lines.
const lineBuffer = 256 << 10

// Lines cuts the inputs of a Set into lines, without allocating per line.
type Lines struct {
	set    *Set
	buf    []byte
	r, w   int // unread bytes are buf[r:w]
	line   []byte
	fault  string
	number int64
	open   bool
	ended  bool // the current input gives no more bytes
}

// NewLines reads the lines of set, from its first input on.
func NewLines(set *Set) *Lines { return &Lines{set: set, buf: make([]byte, lineBuffer)} }

// Next advances to the next line, over the ends of inputs; false at the end of the last input or on
// an error that the Set's Err then gives.
func (l *Lines) Next() bool {
	for {
		if !l.open {
			if !l.set.Next() {
				return false
			}
			l.open, l.ended, l.number, l.r, l.w = true, false, 0, 0, 0
		}
		if l.cut() {
			return true
		}
		if l.set.Err() != nil {
			return false
		}
		l.open = false
	}
}

// cut takes one line of the current input.
func (l *Lines) cut() bool {
	l.fault = ""
	from := l.r
	for {
		if i := bytes.IndexByte(l.buf[from:l.w], '\n'); i >= 0 {
			l.line = trimCR(l.buf[l.r : from+i])
			l.r = from + i + 1
			l.number++
			return true
		}
		if l.ended {
			return l.last()
		}
		if l.w-l.r >= MaxLine {
			return l.drop()
		}
		pending := l.w - l.r
		l.fill()
		from = l.r + pending
	}
}

// trimCR removes carriage returns at the end of a line.
func trimCR(line []byte) []byte {
	for len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line
}

// last gives what stands after the last line end. Where the compression ended early it is the record
// that was lost, whether or not a part of it was read.
func (l *Lines) last() bool {
	rest := l.buf[l.r:l.w]
	l.r = l.w
	problem := l.set.Problem()
	// a line that a failure of the device cut is no line; the Set's Err tells of it
	if l.set.Err() != nil || len(rest) == 0 && problem == "" {
		return false
	}
	l.line, l.fault = trimCR(rest), problem
	l.number++
	l.set.cur.problem = "" // told once
	l.set.cur.body = nil
	return true
}

// drop passes over the rest of a line that is too long.
func (l *Lines) drop() bool {
	for {
		if i := bytes.IndexByte(l.buf[l.r:l.w], '\n'); i >= 0 {
			l.r += i + 1
			break
		}
		l.r = l.w
		if l.ended {
			break
		}
		l.fill()
	}
	l.line, l.fault = nil, "line longer than 1 MiB"
	l.number++
	return true
}

// fill moves the unread bytes to the front, grows the buffer if they fill it, and reads more.
func (l *Lines) fill() {
	if l.r > 0 {
		copy(l.buf, l.buf[l.r:l.w])
		l.w -= l.r
		l.r = 0
	}
	if l.w == len(l.buf) {
		l.buf = append(l.buf, make([]byte, min(len(l.buf), MaxLine))...)
	}
	n, err := l.set.Read(l.buf[l.w:])
	l.w += n
	l.ended = err != nil
}

// Bytes is the current line without its end, valid until the next call of Next.
func (l *Lines) Bytes() []byte { return l.line }

// Fault tells why the current line is not whole, as a short phrase: it is too long, or its input's
// compression is damaged there. Empty for a whole line.
func (l *Lines) Fault() string { return l.fault }

// Number is the number of the current line within its input, from 1.
func (l *Lines) Number() int64 { return l.number }

// Input is the base name of the input that the current line stands in.
func (l *Lines) Input() string { return l.set.Name() }

// Err is the error that ended reading; nil after a good end.
func (l *Lines) Err() error { return l.set.Err() }

// String lists the inputs, for messages.
func (l *Lines) String() string { return l.set.String() }
