package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seatrial/manifest"
)

// TestHTTPGuide reads each manifest of docs/guides/http.md: an example that is refused is a defect.
func TestHTTPGuide(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	for i, b := range blocks {
		text, _, _ := strings.Cut(b, "```")
		if _, err := manifest.Parse([]byte(text), "."); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
	}
	if len(blocks) != 7 {
		t.Errorf("%d blocks", len(blocks))
	}
}
