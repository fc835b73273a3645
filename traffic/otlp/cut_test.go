package otlp

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func TestCutCompressionIsOneLostDocument(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	var ends []int // of the compressed documents
	for range 3 {
		if _, err := w.Write([]byte(get("/a") + "\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, packed.Len())
	}
	for name, size := range map[string]int{"between documents": ends[1], "within a document": ends[1] + 2} {
		dir := t.TempDir()
		first, second := filepath.Join(dir, "a.gz"), filepath.Join(dir, "b.jsonl")
		if err := os.WriteFile(first, packed.Bytes()[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(second, []byte(get("/b")), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openFiles(t, first, second)
		got := events(s)
		k := s.Skipped()
		if len(got) != 3 || !strings.HasPrefix(got[2], "GET /b") || s.Err() != nil || k.Parsed != 3 || k.Unparsable != 1 ||
			len(k.First) != 1 || k.First[0].Input != "a.gz" || k.Notes["gzip data is cut short"] != 1 {
			t.Errorf("%s: %q, %+v, %v", name, got, k, s.Err())
		}
	}
}
