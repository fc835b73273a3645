package otlp

import (
	"bytes"
	"testing"
)

// BenchmarkHostile reads what looks like the start of a message everywhere.
func BenchmarkHostile(b *testing.B) {
	for name, piece := range map[string]string{
		"small": "\x00\x00\x00\x40\x0a\x02\x12\x00\xff", "large": "\x00\xff\xff\xff\x0a\x02\x12\x00\xff", "zstd": "\x00\x00\xf0\xff\x28\xb5\x2f\xfd",
	} {
		text := append(withLength(pbMessage(pbGet("/a"))), bytes.Repeat([]byte(piece), 1<<20/len(piece))...)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := reading(b, bytes.NewReader(text))
				for s.Scan() {
				}
				if s.Err() != nil || s.Skipped().Unparsable < 1000 {
					b.Fatalf("%+v, %v", s.Skipped(), s.Err())
				}
			}
		})
	}
}
