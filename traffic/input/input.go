// Package input opens the files of a traffic source: several paths, globs and standard input are
// one stream of named inputs, plain, gzip or zstd, read in constant memory.
package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"seatrial/fault"
)

// MaxWindow is the largest zstd window, in bytes, that is decompressed; it bounds the memory that a
// hostile or unusual frame can ask for. `zstd -19` needs 8 MiB, `--long=27` would need 128 MiB.
const MaxWindow = 32 << 20

// rawBuffer is how much of a file is read at once, in bytes.
const rawBuffer = 64 << 10

// Set is the inputs of one source, in order. At most one is open at a time. A Set is used by one
// goroutine.
type Set struct {
	paths  []place
	stdin  io.Reader
	next   int // index of the input that Next opens
	peeked bool
	cur    opened
	name   string
	err    error
}

// place is one input: the path to open and the path as it is shown.
type place struct{ open, shown string }

// opened is the input that is being read.
type opened struct {
	file    io.Closer     // nil for standard input
	raw     *watched      // below any decompression
	body    io.Reader     // the plain bytes; nil when nothing is open
	unzstd  *zstd.Decoder // to be closed
	packed  string        // gzip, zstd or empty
	head    []byte        // bytes that Peek took from body and Read gives first
	problem string
}

// watched remembers the error of the file itself, so that it is told apart from damaged
// compression.
type watched struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// Open resolves paths and globs against dir and checks that each can be read. "-" is stdin. A path
// that exists is taken literally even if it holds glob characters; a file that several paths name
// is read once. All problems are returned at once, as *fault.Error or fault.List (TRF-001).
func Open(paths []string, stdin io.Reader, dir string) (*Set, error) {
	s := &Set{stdin: stdin}
	seen := make(map[string]bool)
	var problems fault.List
	if len(paths) == 0 {
		problems = append(problems, fault.New(fault.TRF001, "no path is given to read traffic from"))
	}
	for _, path := range paths {
		found, err := resolve(path, stdin, dir)
		if err != nil {
			problems = append(problems, err)
		}
		for _, p := range found {
			if !seen[p.open] {
				seen[p.open] = true
				s.paths = append(s.paths, p)
			}
		}
	}
	switch len(problems) {
	case 0:
		return s, nil
	case 1:
		return nil, problems[0]
	}
	return nil, problems
}

// resolve gives the files that one argument names.
func resolve(path string, stdin io.Reader, dir string) ([]place, *fault.Error) {
	switch {
	case path == "":
		return nil, fault.New(fault.TRF001, "a path to read traffic from is empty")
	case path == "-" && stdin == nil:
		return nil, fault.New(fault.TRF001, "standard input cannot be read here")
	case path == "-":
		return []place{{"-", "-"}}, nil
	}
	full := path
	if !filepath.IsAbs(path) {
		full = filepath.Join(dir, path)
	}
	_, err := os.Stat(full)
	if err == nil || !strings.ContainsAny(path, "*?[") {
		p := place{filepath.Clean(full), path}
		if e := p.check(); e != nil {
			return nil, e
		}
		return []place{p}, nil
	}
	return expand(path, dir)
}

// expand gives the files that a glob matches, sorted; directories among them are passed over.
func expand(pattern, dir string) ([]place, *fault.Error) {
	full := pattern
	if !filepath.IsAbs(pattern) {
		full = filepath.Join(quoteGlob(dir), pattern)
	}
	matches, err := filepath.Glob(full)
	if err != nil {
		return nil, fault.New(fault.TRF001, "the glob %s is malformed", pattern).Because(err)
	}
	var found []place
	for _, m := range matches {
		info, err := os.Stat(m)
		if err == nil && info.IsDir() {
			continue
		}
		p := place{filepath.Clean(m), m}
		if e := p.check(); e != nil {
			return nil, e
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		return nil, fault.New(fault.TRF001, "the glob %s matches no file", pattern)
	}
	return found, nil
}

// quoteGlob makes a folder's name literal within a glob.
func quoteGlob(dir string) string {
	if os.PathSeparator == '\\' { // there a backslash is no escape
		return dir
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// check opens a regular file once, so that a missing permission is told before anything is read.
// Pipes and devices can be opened only once, and are left alone.
func (p place) check() *fault.Error {
	info, err := os.Stat(p.open)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.TRF001, "%s does not exist", p.shown).Because(err)
	case err != nil:
		return fault.New(fault.TRF001, "%s cannot be read: %s", p.shown, cause(err)).Because(err)
	case info.IsDir():
		return fault.New(fault.TRF001, "%s is a directory", p.shown).
			WithNext("Name the files in it, for example %q.", filepath.Join(p.shown, "*.log"))
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(p.open)
	if err != nil {
		return fault.New(fault.TRF001, "%s cannot be opened: %s", p.shown, cause(err)).Because(err)
	}
	_ = f.Close() // only read from: nothing can be lost
	return nil
}

// cause is the operating system's word for an error, without the path that the message names.
func cause(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// Len is the number of inputs.
func (s *Set) Len() int { return len(s.paths) }

// Name is the base name of the current input, "-" for standard input.
func (s *Set) Name() string { return s.name }

// Next closes the current input and opens the next one; false at the end or on an error that Err
// then gives.
func (s *Set) Next() bool {
	if s.err != nil {
		return false
	}
	if s.peeked {
		s.peeked = false
		return true
	}
	s.cur.close()
	s.cur = opened{}
	if s.next >= len(s.paths) {
		return false
	}
	p := s.paths[s.next]
	s.next++
	s.name = filepath.Base(p.open)
	cur, err := open(p, s.stdin)
	if err != nil {
		s.err = err
		return false
	}
	s.cur = cur
	return true
}

// Read reads the plain bytes of the current input. At its end, and where its compression is
// damaged, it gives io.EOF; Problem tells the two apart. Any other error is also Err's.
func (s *Set) Read(p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case len(s.cur.head) > 0:
		n := copy(p, s.cur.head)
		s.cur.head = s.cur.head[n:]
		return n, nil
	case s.cur.body == nil || s.cur.problem != "":
		return 0, io.EOF
	}
	n, err := s.cur.body.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if raw := s.cur.raw.err; raw != nil {
		s.err = fault.New(fault.TRF001, "reading %s stopped: %s", s.name, cause(raw)).Because(raw)
		return n, s.err
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		s.err = tooWide(s.name, err)
		return n, s.err
	}
	s.cur.problem = damage(s.cur.packed, err)
	return n, io.EOF
}

// tooWide refuses a zstd frame whose window is over MaxWindow.
func tooWide(name string, err error) *fault.Error {
	return fault.New(fault.TRF001, "%s needs a zstd window of more than %d MiB", name, MaxWindow>>20).
		WithNext("Pipe it: `zstd -dc --long=31 FILE | seatrial ... -`.").Because(err)
}

// damage names what is wrong with compressed data.
func damage(packed string, err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return packed + " data is cut short"
	}
	return packed + " data is damaged"
}

// Problem is what made the current input end early, as a short phrase; empty when it ended well. What
// was read before it stands.
func (s *Set) Problem() string { return s.cur.problem }

// Err is the error that ended reading; nil after a good end.
func (s *Set) Err() error { return s.err }

// Peek gives up to n of the first plain bytes of the first input that is not empty, without
// consuming them. It is to be called before the first Next.
func (s *Set) Peek(n int) ([]byte, error) {
	for len(s.cur.head) == 0 && s.Next() {
		head := make([]byte, n)
		got, err := io.ReadFull(s, head)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		s.cur.head = head[:got]
		// an empty input that is not the last is passed over: it holds nothing
		s.peeked = got > 0 || s.next == len(s.paths)
		if s.peeked {
			break
		}
	}
	return s.cur.head, s.err
}

// Close closes the current input. It may be called more than once.
func (s *Set) Close() error {
	s.cur.close()
	s.cur = opened{}
	s.next = len(s.paths)
	return nil
}

func (o *opened) close() {
	if o.unzstd != nil {
		o.unzstd.Close()
	}
	if o.file != nil {
		_ = o.file.Close() // only read from: nothing can be lost
	}
}

// open opens one input and recognises its compression by the first bytes.
func open(p place, stdin io.Reader) (opened, error) {
	var o opened
	o.raw = &watched{r: stdin}
	if p.open != "-" {
		f, err := os.Open(p.open)
		if err != nil {
			return o, fault.New(fault.TRF001, "%s cannot be opened: %s", p.shown, cause(err)).Because(err)
		}
		o.file, o.raw.r = f, f
	}
	buffered := bufio.NewReaderSize(o.raw, rawBuffer)
	magic, err := buffered.Peek(6)
	if o.raw.err != nil {
		o.close()
		return o, fault.New(fault.TRF001, "%s cannot be read: %s", p.shown, cause(o.raw.err)).Because(err)
	}
	if err := o.unpack(buffered, magic, p.shown); err != nil {
		o.close()
		return o, err
	}
	return o, nil
}

// unpack sets body, packed and problem.
func (o *opened) unpack(r *bufio.Reader, magic []byte, shown string) error {
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		o.packed = "gzip"
		z, err := gzip.NewReader(r) // members that follow each other are read as one
		if err != nil {
			o.problem = damage(o.packed, err)
			return nil
		}
		o.body = z
	case isZstd(magic):
		o.packed = "zstd"
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(MaxWindow))
		if err != nil {
			return fault.New(fault.TRF001, "%s cannot be decompressed: %s", shown, err).Because(err)
		}
		o.body, o.unzstd = z, z
	default:
		if name := unread(magic); name != "" {
			return fault.New(fault.TRF001, "%s is %s, which is not read; plain, gzip and zstd are", shown, name).
				WithNext("Decompress it first, and pipe the result to `-` if you like.")
		}
		o.body = r
	}
	return nil
}

// isZstd knows a zstd frame and the skippable frames that may come first (RFC 8878, 3.1).
func isZstd(magic []byte) bool {
	return bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd")) ||
		len(magic) >= 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:4], []byte("\x2a\x4d\x18"))
}

// unread names a compression that is known and not read; empty for anything else.
func unread(magic []byte) string {
	for _, k := range [...]struct{ magic, name string }{
		{"\xfd7zXZ\x00", "an xz file"},
		{"BZh", "a bzip2 file"},
		{"PK\x03\x04", "a zip archive"},
		{"\x04\x22\x4d\x18", "an lz4 file"},
		{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	} {
		if bytes.HasPrefix(magic, []byte(k.magic)) {
			return k.name
		}
	}
	return ""
}

// String lists the inputs, for messages.
func (s *Set) String() string {
	switch n := len(s.paths); {
	case n == 0:
		return "no input"
	case n > 3:
		return fmt.Sprintf("%s, %s and %d more", s.paths[0].shown, s.paths[1].shown, n-2)
	default:
		names := make([]string, n)
		for i, p := range s.paths {
			names[i] = p.shown
		}
		return strings.Join(names, ", ")
	}
}
