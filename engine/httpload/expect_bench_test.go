package httpload

import (
	"strings"
	"testing"
)

// BenchmarkExpect looks at a response of 4 KiB for two fields and two texts.
func BenchmarkExpect(b *testing.B) {
	e, err := NewExpect(Expectation{Status: []int{200}, Fields: []FieldExpect{{Name: "Content-Type", Contains: "json"}, {Name: "X-Id"}}, Contains: []string{`"price":`, `"sku":`}})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(strings.Repeat(`{"name": "x", "pricing": 1, `, 150) + `"price": 2, "sku": 3}`)
	name, value, id := []byte("content-type"), []byte("application/json"), []byte("x-id")
	var c checker
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		c.reset(e)
		c.field(name, value)
		c.field(id, value)
		c.data(body)
		if c.wrong(200) != nil {
			b.Fatal("it does not hold")
		}
	}
}

// BenchmarkWrite builds the bytes of a request with a field and a body.
func BenchmarkWrite(b *testing.B) {
	cfg := Config{Host: "shop.example.com", UserAgent: "seatrial/test", Headers: []Header{{"Accept", "*/*"}}, Trace: 0.5}
	w := newWriter(&cfg, 1)
	r := Request{Method: "POST", Target: []byte("/cart/items?page=2"), Fields: []Field{{Name: "Content-Type", Value: []byte("application/json")}}, Body: []byte(`{"sku": "B-7", "count": 2}`)}
	var out []byte
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		out = w.append(out[:0], i, &r)
	}
	b.SetBytes(int64(len(out)))
}
