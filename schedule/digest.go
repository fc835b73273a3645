package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest is a running SHA-256 over a sequence of requests, so that a report can show that two runs
// sent the same. It hashes (index, due, route, length of the values, values) of each, integers
// little-endian of 8 bytes. It does not keep the sequence and does not allocate per arrival.
type Digest struct {
	hash hash.Hash
	buf  []byte
}

const digestBuffer = 4096

// NewDigest starts an empty digest.
func NewDigest() *Digest {
	return &Digest{hash: sha256.New(), buf: make([]byte, 0, digestBuffer)}
}

// Add adds one arrival with its route and its concrete values, e.g. the request-target.
func (d *Digest) Add(a Arrival, route uint32, values []byte) {
	if len(d.buf)+32 > cap(d.buf) {
		d.flush()
	}
	d.buf = binary.LittleEndian.AppendUint64(d.buf, a.Index)
	d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(a.Due))
	d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(route))
	d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(len(values)))
	if len(d.buf)+len(values) <= cap(d.buf) {
		d.buf = append(d.buf, values...)
		return
	}
	d.flush()
	d.hash.Write(values) // never fails, by the contract of hash.Hash
}

func (d *Digest) flush() {
	d.hash.Write(d.buf)
	d.buf = d.buf[:0]
}

// Sum is the digest of everything added so far, in hexadecimal. More can be added after it.
func (d *Digest) Sum() string {
	d.flush()
	return hex.EncodeToString(d.hash.Sum(nil))
}
