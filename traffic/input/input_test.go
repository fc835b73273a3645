package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"seatrial/fault"
)

// write makes the files of a folder.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write([]byte(text))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lines are the lines of a set as input:number:text, with the fault in place of the text.
func lines(set *Set) []string {
	var out []string
	l := NewLines(set)
	for l.Next() {
		text := string(l.Bytes())
		if l.Fault() != "" {
			text = "(" + l.Fault() + ")"
		}
		out = append(out, fmt.Sprintf("%s:%d:%s", l.Input(), l.Number(), text))
	}
	return out
}

func open1(t *testing.T, dir string, stdin io.Reader, paths ...string) *Set {
	t.Helper()
	set, err := Open(paths, stdin, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

func TestPathsAndGlobsAreOneSource(t *testing.T) {
	dir := write(t, map[string][]byte{
		"b.log": []byte("b1\r\nb2"), "a.log": []byte("a1\n"), "c[1].log": []byte("c1\n"), "empty.log": nil,
		"z.gz":  slices.Concat(gzipped(t, "g1\ng"), gzipped(t, "2\n")),
		"z.zst": slices.Concat(zstded(t, "z1\n"), []byte("\x51\x2a\x4d\x18\x02\x00\x00\x00xx"), zstded(t, "z2")),
	})
	if err := os.Mkdir(filepath.Join(dir, "d.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	set := open1(t, dir, strings.NewReader("s1\n\ns3"), "b.log", "*.log", "-", "c[1].log", filepath.Join(dir, "z.*"), "-", "./a.log")
	want := []string{"b.log:1:b1", "b.log:2:b2", "a.log:1:a1", "c[1].log:1:c1", "-:1:s1", "-:2:", "-:3:s3",
		"z.gz:1:g1", "z.gz:2:g2", "z.zst:1:z1", "z.zst:2:z2"}
	if got := lines(set); !slices.Equal(got, want) || set.Err() != nil || set.Len() != 7 {
		t.Errorf("got %q, %v, %d inputs", got, set.Err(), set.Len())
	}
	if got := set.String(); !strings.Contains(got, "b.log") || !strings.Contains(got, "5 more") {
		t.Errorf("named %q", got)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := write(t, map[string][]byte{"a.xz": []byte("\xfd7zXZ\x00..."), "a.bz2": []byte("BZh9..."), "a.zip": []byte("PK\x03\x04..")})
	for path, word := range map[string]string{
		"nothere.log": "does not exist", "*.none": "matches no file", ".": "is a directory", "": "is empty", "[": "malformed",
		"-": "standard input",
	} {
		_, err := Open([]string{path}, nil, dir)
		if e, ok := fault.As(err); !ok || e.Code != fault.TRF001 || !strings.Contains(e.Message, word) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := Open([]string{"x", "y", "*.z"}, nil, dir); len(strings.Split(fmt.Sprint(err), "\n")) != 3 {
		t.Errorf("not every problem is told: %v", err)
	}
	if _, err := Open(nil, nil, dir); err == nil {
		t.Error("no path is no error")
	}
	for name, word := range map[string]string{"a.xz": "xz", "a.bz2": "bzip2", "a.zip": "zip"} {
		set := open1(t, dir, nil, name)
		if got := lines(set); len(got) > 0 || !strings.Contains(fmt.Sprint(set.Err()), word) {
			t.Errorf("%s: %q, %v", name, got, set.Err())
		}
	}
}

func TestFileThatVanishesIsAnError(t *testing.T) {
	dir := write(t, map[string][]byte{"a.log": []byte("a\n"), "b.log": []byte("b\n")})
	set := open1(t, dir, nil, "a.log", "b.log")
	if err := os.Remove(filepath.Join(dir, "b.log")); err != nil {
		t.Fatal(err)
	}
	if got := lines(set); !slices.Equal(got, []string{"a.log:1:a"}) {
		t.Errorf("got %q", got)
	}
	if e, ok := fault.As(set.Err()); !ok || e.Code != fault.TRF001 {
		t.Errorf("Err = %v", set.Err())
	}
}

func TestCutCompressionKeepsWhatWasRead(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d of %x\n", i, i*i*2654435761)
	}
	gz, zst := gzipped(t, text.String()), zstded(t, text.String())
	broken := slices.Clone(gz)
	broken[len(broken)-6] ^= 0xff // in the checksum
	for name, c := range map[string]struct {
		data    []byte
		problem string
	}{
		"cut.gz": {gz[:len(gz)/2], "gzip data is cut short"}, "cut.zst": {zst[:len(zst)/2], "zstd data is cut short"},
		"checksum.gz": {broken, "gzip data is damaged"}, "behind.gz": {append(slices.Clone(gz), "garbage behind"...), "gzip data is damaged"},
		"head.gz": {[]byte("\x1f\x8b"), "gzip data is cut short"},
	} {
		dir := write(t, map[string][]byte{name: c.data, "next.log": []byte("next\n")})
		set := open1(t, dir, nil, name, "next.log")
		got := lines(set)
		if n := len(got); n < 2 || got[n-1] != "next.log:1:next" || !strings.HasSuffix(got[n-2], ":("+c.problem+")") || set.Err() != nil {
			t.Errorf("%s: %q ..., %v", name, got[max(0, n-3):], set.Err())
		} else if name != "head.gz" && n < 1000 {
			t.Errorf("%s: only %d lines were kept", name, n)
		}
	}
}

func TestZstdWindowIsBounded(t *testing.T) {
	// a frame header whose window descriptor asks for 2^28 bytes
	dir := write(t, map[string][]byte{"wide.zst": append([]byte("\x28\xb5\x2f\xfd\x00\x90"), make([]byte, 64)...)})
	set := open1(t, dir, nil, "wide.zst")
	if got := lines(set); len(got) > 0 || !strings.Contains(fmt.Sprint(set.Err()), "window") {
		t.Errorf("%q, %v", got, set.Err())
	}
}

func TestLongLines(t *testing.T) {
	fits, over := strings.Repeat("f", MaxLine-1), strings.Repeat("o", 2*MaxLine)
	for _, reader := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.DataErrReader} {
		set := open1(t, ".", reader(strings.NewReader("a\n"+fits+"\n"+over+"\nb\n"+over)), "-")
		want := []string{"-:1:a", "-:2:" + fits, "-:3:(line longer than 1 MiB)", "-:4:b", "-:5:(line longer than 1 MiB)"}
		if got := lines(set); !slices.Equal(got, want) {
			t.Errorf("%d lines: %.40q", len(got), got)
		}
	}
}

func TestPeekConsumesNothing(t *testing.T) {
	dir := write(t, map[string][]byte{"a": nil, "b.gz": gzipped(t, "hello\nworld"), "c": []byte("!")})
	set := open1(t, dir, nil, "a", "b.gz", "c")
	for range 2 {
		if head, err := set.Peek(4); string(head) != "hell" || err != nil {
			t.Errorf("Peek gives %q, %v", head, err)
		}
	}
	if got, want := lines(set), []string{"b.gz:1:hello", "b.gz:2:world", "c:1:!"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	empty := open1(t, dir, nil, "a")
	if head, err := empty.Peek(4); len(head) > 0 || err != nil || len(lines(empty)) > 0 {
		t.Errorf("an empty input gives %q, %v", head, err)
	}
}

func TestPathOfATarget(t *testing.T) {
	for target, want := range map[string]string{
		"/a/b": "/a/b", "/a?b#c": "/a", "/a#c?b": "/a", "": "/", "?x": "/", "http://h": "/", "http://h/": "/", "HTTPS://u:p@h:1/a?b": "/a",
		"http://h?x": "/", "//h/a": "//h/a", "a:b//c": "a:b//c", "1x://h/a": "1x://h/a", "x+y.z-1://h/a": "/a", "*": "*", "://a": "://a",
	} {
		if got := string(Path([]byte(target))); got != want {
			t.Errorf("Path(%q) = %q, want %q", target, got, want)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n"))
	f.Add(gzipped(f, "a\nb"))
	f.Add(zstded(f, "a\nb"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Open([]string{"-"}, bytes.NewReader(data), ".")
		if err != nil {
			t.Fatal(err)
		}
		first := lines(set)
		again, err := Open([]string{"-"}, iotest.OneByteReader(bytes.NewReader(data)), ".")
		if err != nil {
			t.Fatal(err)
		}
		if second := lines(again); !slices.Equal(first, second) || (set.Err() == nil) != (again.Err() == nil) {
			t.Fatalf("at once %q (%v), byte by byte %q (%v)", first, set.Err(), second, again.Err())
		}
	})
}
