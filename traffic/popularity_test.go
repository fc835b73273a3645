package traffic

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The vectors of the reference implementation of SipHash-2-4: key 00..0f, message 00, 01, ...
func TestSaltedHash(t *testing.T) {
	s := salt{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	var message []byte
	want := map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5}
	for i := range 16 {
		if w, ok := want[i]; ok && s.hash(message) != w {
			t.Errorf("%d bytes: %x, want %x", i, s.hash(message), w)
		}
		message = append(message, byte(i))
	}
	a, b := newSalt(nil), newSalt(nil)
	if a == b {
		t.Error("two random salts are the same")
	}
	if x, again, y := newSalt([]byte("x")), newSalt([]byte("x")), newSalt([]byte("y")); x != again || x == y {
		t.Error("a salt does not follow from its secret")
	}
}

// tallied draws n requests by a law over values and counts them.
func tallied(seed uint64, values, exponent float64, n uint64) *tally {
	z, t := newZipf(values, exponent), &tally{}
	for i := range n {
		t.add(mix64(z.at(seed, i)+seed), firstHold)
	}
	return t
}

// TR-24: the exponent of known laws comes back within 0.05, the number of values within what a sketch
// can tell, and the values that were not met by chance are accounted for.
func TestFitOfKnownLaws(t *testing.T) {
	const requests = 400_000
	for _, exponent := range []float64{0.6, 0.8, 1, 1.2, 1.4} {
		for _, values := range []float64{100, 1000, 10_000, 100_000, 1_000_000} {
			seen := tallied(uint64(values), values, exponent, requests)
			p := seen.popularity()
			name := fmt.Sprintf("exponent %g over %g values", exponent, values)
			law, ok := p.Law()
			if !ok || math.Abs(law.Exponent-exponent) > 0.05 || p.ExponentError <= 0 || p.ExponentError > 0.02 {
				t.Errorf("%s: %+v", name, law)
			}
			if r := float64(law.Values) / values; exponent <= 1 && (r < 0.85 || r > 1.15) {
				t.Errorf("%s: a law over %d values", name, law.Values)
			}
			exact := map[uint64]bool{}
			z := newZipf(values, exponent)
			for i := range uint64(requests) {
				exact[z.at(uint64(values), i)] = true
			}
			if got, want := float64(p.Distinct), float64(len(exact)); math.Abs(got-want) > 4*p.DistinctError*want {
				t.Errorf("%s: %g distinct values, want %g", name, got, want)
			}
		}
	}
}

// Where the data does not suffice nothing is told.
func TestFitOfTooLittle(t *testing.T) {
	every := &tally{}
	for i := range uint64(100_000) {
		every.add(mix64(i), firstHold)
	}
	few := tallied(1, 100, 1, 50)
	for name, s := range map[string]*tally{"each value once": every, "50 requests": few} {
		p := s.popularity()
		if _, ok := p.Law(); ok || p.Support != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := every.popularity(); math.Abs(float64(p.Distinct)-100_000) > 4*sketchError*100_000 || p.Requests != 100_000 {
		t.Errorf("%+v", p)
	}
	one := &tally{}
	for n := range minTop {
		if _, ok := one.popularity().Law(); ok {
			t.Errorf("one value of %d requests has a law", n)
		}
		one.add(7, firstHold)
	}
	if law, ok := one.popularity().Law(); !ok || law != (Law{0, 1}) {
		t.Errorf("one value: %+v", law)
	}
	if (&tally{}).popularity() != nil {
		t.Error("nothing has a popularity")
	}
	even := &tally{}
	for i := range uint64(200_000) {
		even.add(mix64(i%100), firstHold)
	}
	if law, ok := even.popularity().Law(); !ok || law.Exponent > 0.001 || law.Values != 100 {
		t.Errorf("all alike: %+v", law)
	}
}

// A tally of up to 2*hold values is the same whatever the order and the splitting; beyond, each count
// lies within what it says.
func TestTallyMerges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 30), 1, 400).Draw(rt, "values")
		hold := rapid.IntRange(1, 20).Draw(rt, "hold")
		parts := make([]tally, rapid.IntRange(1, 6).Draw(rt, "parts"))
		exact := map[uint64]uint64{}
		for i, v := range values {
			exact[v]++
			parts[i%len(parts)].add(mix64(v), hold)
		}
		var sum tally
		for i := range parts {
			sum.merge(&parts[i], hold)
		}
		if sum.total != uint64(len(values)) {
			rt.Fatalf("%d requests of %d", sum.total, len(values))
		}
		m := sum.all()
		if len(exact) <= 2*hold && (m.floor != 0 || m.distinct != nil || len(m.held) != len(exact)) {
			rt.Fatalf("%d values of %d at %d, floor %d", len(m.held), len(exact), hold, m.floor)
		}
		for v, n := range exact {
			h, known := m.held[mix64(v)]
			if known && (n < h.n || n > h.n+h.missed) || !known && n > m.floor {
				rt.Fatalf("value %d came %d times: %+v (floor %d)", v, n, h, m.floor)
			}
		}
	})
}

// A sketch of the parts is the sketch of the whole.
func TestSketchMerges(t *testing.T) {
	whole, a, b := newSketch(), newSketch(), newSketch()
	for i := range uint64(50_000) {
		h := mix64(i)
		whole.add(h)
		[]*sketch{a, b}[i%2].add(h)
		if i%3 == 0 {
			b.add(h)
		}
	}
	if a.merge(b); *a != *whole {
		t.Error("the sketches differ")
	}
}

// The profile holds it by placeholder, without the values and without the salt, and reads it back.
func TestPopularityInTheProfile(t *testing.T) {
	var events []Event
	z := newZipf(300, 1)
	for i := range uint64(30_000) {
		events = append(events, seen("GET", fmt.Sprintf("/shops/%d/items/%d", z.at(1, i)+1000, i%7+40)))
	}
	for i := range 600 {
		events = append(events, seen("GET", "/tags/"+word(i%150)), seen("GET", "/files/"+fmt.Sprintf("app.%08xa1.js", 1<<28+i%3)))
	}
	salt := []byte("a secret of the test")
	p, _ := build(t, BuilderConfig{Declared: []string{"/tags/{tag}"}, Salt: salt}, events)
	r := route(t, p, "GET /shops/{id}/items/{id}")
	shops, items := r.Popularity["id"], r.Popularity["id2"]
	if shops == nil || shops.Distinct != 300 || math.Abs(*shops.Exponent-1) > 0.05 || shops.Requests != 30_000 {
		t.Errorf("shops %+v", shops)
	}
	if items == nil || items.Distinct != 7 || *items.Exponent > 0.01 || items.Support != 7 {
		t.Errorf("items %+v", items)
	}
	if tags := route(t, p, "GET /tags/{tag}").Popularity["tag"]; tags == nil || tags.Distinct != 150 || tags.Exponent != nil {
		t.Errorf("tags %+v", tags) // four requests each tell nothing
	}
	if files := route(t, p, "GET /files/app.{hash}.js").Popularity["hash"]; files == nil || files.Distinct != 3 {
		t.Errorf("files %+v", files)
	}
	data := encode(t, p)
	for _, not := range []string{"1000", word(3), "secret", saltMark(salt), "10000000"} {
		if bytes.Contains(data, []byte(not)) {
			t.Errorf("the profile holds %q", not)
		}
	}
	back, err := ReadProfile(bytes.NewReader(data), "p", testNow, 0)
	if err != nil || !bytes.Equal(encode(t, back), data) {
		t.Errorf("does not come back: %v", err)
	}
	bad := strings.Replace(string(data), `"distinct": 300`, `"distinct": 40000`, 1)
	if _, err := ReadProfile(strings.NewReader(bad), "p", testNow, 0); err == nil || !strings.Contains(err.Error(), "popularity of {id}") {
		t.Errorf("an edited popularity was read: %v", err)
	}
}

// A position that collapses late has the popularity of its literals.
func TestPopularityOfCollapsedLiterals(t *testing.T) {
	var events []Event
	for i := range 120 {
		events = append(events, repeat(1+i/8, seen("GET", "/shop/"+word(i)+"/view"))...)
	}
	p, _ := build(t, BuilderConfig{MaxDistinct: 3}, events)
	if got := route(t, p, "GET /shop/{id}/view").Popularity["id"]; got == nil || got.Distinct != 120 || got.Requests != 960 {
		t.Errorf("%+v", got)
	}
}

// Values in all places together stay bounded, and what was popular is still known.
func TestTalliesAreBounded(t *testing.T) {
	b, err := NewBuilder(BuilderConfig{Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	e := seen("GET", "")
	for i := range uint64(2_400_000) {
		id := mix64(i)
		if i%2 == 0 {
			id = i / 2 % 50
		}
		e.Path = fmt.Appendf(e.Path[:0], "/r%c%c/%d", 'a'+byte(i/2%16), 'a'+byte(i/32%8), id)
		b.Add(&e)
	}
	held := 0
	b.leaves(func(l *leaf) {
		for i := range l.places {
			held += l.places[i].shrink(math.MaxInt / 4)
		}
	})
	if held > maxHeld || b.sampling.hold >= firstHold {
		t.Errorf("%d values are held, %d for each place", held, b.sampling.hold)
	}
	p, _, err := b.Finish(nil, testNow)
	if err != nil || p.check() != nil {
		t.Fatal(err, p.check())
	}
	if got := p.Routes[0].Popularity["id"]; got == nil || got.DistinctError == 0 {
		t.Errorf("%+v", got)
	}
}

func TestShuffleIsAPermutation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64Range(1, 3000).Draw(rt, "n")
		s := newShuffle(rapid.Uint64().Draw(rt, "seed"), n)
		met := make([]bool, n)
		for x := range n {
			y := s.at(x)
			if y >= n || met[y] {
				rt.Fatalf("%d of %d goes to %d", x, n, y)
			}
			met[y] = true
		}
	})
	if s := newShuffle(1, math.MaxUint64); s.at(5) == s.at(6) {
		t.Error("two of the widest range coincide")
	}
}

// The frequencies of a popular pool are the law's, by table and by rejection, and follow from the seed.
func TestPopularPools(t *testing.T) {
	for _, exponent := range []float64{0, 0.6, 1, 1.4} {
		small, err := NewPopularIntPool(1, 1000, Law{exponent, 200}, 3)
		if err != nil {
			t.Fatal(err)
		}
		large, err := NewPopularIntPool(1, maxAlias+5, Law{exponent, 200}, 3)
		if err != nil {
			t.Fatal(err)
		}
		var h float64
		for r := range 200 {
			h += math.Pow(float64(r+1), -exponent)
		}
		for name, p := range map[string]*Pool{"table": small, "rejection": large} {
			counts := map[uint64]uint64{}
			const draws = 200_000
			for i := range uint64(draws) {
				counts[p.Pick(9, i, 0, 0)]++
			}
			if len(counts) != 200 {
				t.Errorf("%s at %g: %d values, want 200", name, exponent, len(counts))
			}
			ranks := newShuffle(3, p.Len())
			for _, r := range []uint64{0, 1, 9, 99} {
				want := draws * math.Pow(float64(r+1), -exponent) / h
				if got := float64(counts[ranks.at(r)]); math.Abs(got-want) > 5*math.Sqrt(want) {
					t.Errorf("%s at %g: rank %d drawn %g times, want %g", name, exponent, r+1, got, want)
				}
			}
			if n := testing.AllocsPerRun(100, func() { p.Pick(9, 77, 0, 0) }); n != 0 {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
	words := []string{"d", "a", "c", "b", "a"}
	a, err := NewPopularPool(words, Law{1, 9}, 5)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(words)
	b, err := NewPopularPool(words, Law{1, 9}, 5)
	other, err2 := NewPopularPool(words, Law{1, 9}, 6)
	if err != nil || err2 != nil || a.Len() != 4 || a.Digest() != b.Digest() || a.Digest() == other.Digest() || a.Weight(0) != b.Weight(0) {
		t.Errorf("%v %v: order changes a pool, or the seed does not", err, err2)
	}
	for name, law := range map[string]Law{"steep": {9, 5}, "no number": {math.NaN(), 5}, "no values": {1, 0}} {
		if _, err := NewPopularPool(words, law, 1); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// What a reservoir left out does not make the rest even: the most popular value kept has the share of
// the law's first rank.
func TestValuesKeepTheirPopularity(t *testing.T) {
	var events []Event
	z := newZipf(2000, 1)
	for i := range uint64(60_000) {
		events = append(events, seen("GET", fmt.Sprintf("/items/%d", z.at(1, i)+10_000)))
	}
	p, o := build(t, BuilderConfig{Keep: 100}, events)
	law, _ := route(t, p, "GET /items/{id}").Popularity["id"].Law()
	tuples := o.Tuples("GET /items/{id}")
	var top, sum float64
	best := Tuple{}
	for _, tuple := range tuples {
		sum += tuple.Weight
		if top = max(top, tuple.Weight); tuple.Count > best.Count {
			best = tuple
		}
	}
	var h float64
	for _, w := range law.weights(100) {
		h += w
	}
	if len(tuples) != 100 || best.Weight != top || math.Abs(top/sum-1/h) > 1e-9 {
		t.Errorf("%d tuples, the first with %g of %g", len(tuples), top, sum)
	}
	_, all := build(t, BuilderConfig{}, events)
	for _, tuple := range all.Tuples("GET /items/{id}") {
		if tuple.Weight != float64(tuple.Count) {
			t.Fatalf("%+v, though all values were kept", tuple)
		}
	}
}

func BenchmarkPopularPick(b *testing.B) {
	for _, n := range []int64{10_000, 1 << 30} {
		p, err := NewPopularIntPool(1, n, Law{1.1, uint64(n)}, 3)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			i := uint64(0)
			for b.Loop() {
				p.Pick(1, i, 0, 0)
				i++
			}
		})
	}
}
