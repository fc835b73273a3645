package http2

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

// sameHuffman compares with x/net's decoder.
func sameHuffman(t interface{ Fatalf(string, ...any) }, b []byte) {
	got, ok := appendHuffman(nil, b)
	want, err := hpack.HuffmanDecodeToString(b)
	if ok != (err == nil) || ok && string(got) != want {
		t.Fatalf("%x gives %q, %v; want %q, %v", b, got, ok, want, err)
	}
}

// TestHuffmanOfEachByte: alone, in every place of a longer string, and with every change of its end.
func TestHuffmanOfEachByte(t *testing.T) {
	for i := range 256 {
		for before := range 9 {
			s := append(bytes.Repeat([]byte("e"), before), byte(i))
			b := hpack.AppendHuffmanString(nil, string(s))
			if got, ok := appendHuffman(nil, b); !ok || !bytes.Equal(got, s) {
				t.Fatalf("%q gives %q, %v", s, got, ok)
			}
			for end := range 256 {
				sameHuffman(t, append(b[:len(b)-1:len(b)-1], byte(end)))
				sameHuffman(t, append(b[:len(b):len(b)], byte(end)))
			}
		}
	}
	for n := range 12 {
		sameHuffman(t, bytes.Repeat([]byte{0xff}, n))
	}
}

func TestHuffmanProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if rapid.Bool().Draw(t, "right") {
			sameHuffman(t, hpack.AppendHuffmanString(nil, string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))))
			return
		}
		sameHuffman(t, rapid.SliceOf(rapid.SampledFrom([]byte{0xff, 0xfe, 0, 0x7f, 0xaa, 0x55, 0xf8})).Draw(t, "bits"))
	})
}
