package schedule

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDigestIsTheHashOfItsSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDigest()
		var plain bytes.Buffer
		for i := range rapid.IntRange(0, 40).Draw(t, "arrivals") {
			a := Arrival{Index: uint64(i), Due: time.Duration(rapid.Int64Min(0).Draw(t, "due"))}
			route := rapid.Uint32().Draw(t, "route")
			values := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "values")
			if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
				values = bytes.Repeat([]byte("x"), 2*digestBuffer)
			}
			d.Add(a, route, values)
			for _, v := range []uint64{a.Index, uint64(a.Due), uint64(route), uint64(len(values))} {
				plain.Write(binary.LittleEndian.AppendUint64(nil, v))
			}
			plain.Write(values)
			if rapid.IntRange(0, 9).Draw(t, "look") == 0 {
				d.Sum() // looking must not change what follows
			}
		}
		want := sha256.Sum256(plain.Bytes())
		if got := d.Sum(); got != hex.EncodeToString(want[:]) {
			t.Fatalf("digest %s, want %x", got, want)
		}
	})
}

func TestDigestDoesNotAllocate(t *testing.T) {
	d := NewDigest()
	values := []byte("/orders/42")
	if n := testing.AllocsPerRun(1000, func() { d.Add(Arrival{Index: 1, Due: 2}, 3, values) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}
