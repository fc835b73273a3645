package accesslog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func TestCutCompressionIsOneLostLine(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(line("GET /a HTTP/1.1") + line("GET /b HTTP/1.1")[:70])); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil { // and never the end
		t.Fatal(err)
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.gz"), filepath.Join(dir, "b.log")
	if err := os.WriteFile(first, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second, []byte(line("GET /c HTTP/1.1")), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openFile(t, first, second)
	got := tally(t, s)
	k := s.Skipped()
	if got.requests != 2 || got.routes[[2]string{"GET", "/c"}] != 1 || k.Unparsable != 1 || k.First[0].Line != 2 ||
		k.First[0].Input != "a.gz" || k.Notes["gzip data is cut short"] != 1 || s.Err() != nil {
		t.Errorf("%v, %+v, %v", got.routes, k, s.Err())
	}
}
