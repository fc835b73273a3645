package http2

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

// decoded is a header list in words, or the error's.
func decodeOurs(d *decoder, b []byte) ([]string, error) {
	n, err := d.begin(b)
	var words []string
	for b = b[n:]; err == nil && len(b) > 0; b = b[n:] {
		var f field
		if f, n, err = d.next(b); err == nil {
			words = append(words, string(f.name)+"\x00"+string(f.value))
		}
	}
	return words, err
}

func decodeTheirs(d *hpack.Decoder, b []byte) ([]string, error) {
	fields, err := d.DecodeFull(b)
	var words []string
	for _, f := range fields {
		words = append(words, f.Name+"\x00"+f.Value)
	}
	return words, err
}

// agree decodes blocks by both and reports the first difference. After an error a table is of no use.
func agree(blocks [][]byte) error {
	ours, theirs := newDecoder(), hpack.NewDecoder(tableSize, nil)
	for i, b := range blocks {
		got, err := decodeOurs(&ours, b)
		want, wantErr := decodeTheirs(theirs, b)
		switch {
		case (err != nil) != (wantErr != nil):
			return fmt.Errorf("block %d, %x: %w", i, b, errors.Join(err, wantErr)) // the one that there is
		case err != nil:
			return nil
		case !slices.Equal(got, want):
			return fmt.Errorf("block %d, %x: %q; want %q", i, b, got, want)
		}
		if err := sound(&ours); err != nil {
			return fmt.Errorf("block %d, %x: %w", i, b, err)
		}
	}
	return nil
}

// sound checks the bounds of a decoder's table.
func sound(d *decoder) error {
	size := 0
	for i := range d.count {
		e := d.entries[(d.oldest+i)&(len(d.entries)-1)]
		size += int(e.name) + int(e.value) + entryOverhead
	}
	if size != d.size || size > d.max || len(d.arena) > tableSize*3/2 || len(d.entries) > tableSize/entryOverhead {
		return fmt.Errorf("size %d of %d, counted %d, buffer %d, places %d", d.size, d.max, size, len(d.arena), len(d.entries))
	}
	return nil
}

// TestDecoderProperty: what x/net's encoder writes is read, whatever the table is set to.
func TestDecoderProperty(t *testing.T) {
	name := rapid.SampledFrom([]string{":status", "server", "date", "etag", "x-a", "x-b", "content-length", "Upper", "", strings.Repeat("n", 1500)})
	value := rapid.OneOf(rapid.SampledFrom([]string{"200", "", "nginx", strings.Repeat("v", 3000), strings.Repeat("\xfe", 4100)}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		var buf bytes.Buffer
		enc := hpack.NewEncoder(&buf)
		var blocks [][]byte
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			least := 0
			if rapid.IntRange(0, 4).Draw(t, "resize") == 0 {
				enc.SetMaxDynamicTableSize(uint32(rapid.IntRange(0, tableSize).Draw(t, "table")))
				least = 1 // x/net does not read the two changes in a row that the RFC allows
			}
			for range rapid.IntRange(least, 12).Draw(t, "fields") {
				f := hpack.HeaderField{Name: name.Draw(t, "name"), Value: value.Draw(t, "value"), Sensitive: rapid.IntRange(0, 9).Draw(t, "secret") == 0}
				must(enc.WriteField(f))
			}
			blocks = append(blocks, bytes.Clone(buf.Bytes()))
			buf.Reset()
		}
		if err := agree(blocks); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTwoChangesOfTheTable: the smallest size and the last one (RFC 7541, 4.2).
func TestTwoChangesOfTheTable(t *testing.T) {
	d := newDecoder()
	for _, block := range []string{"\x40\x01a\x01b", "\x20\x3f\x09\x40\x01a\x01c"} {
		if _, err := decodeOurs(&d, []byte(block)); err != nil {
			t.Fatal(err)
		}
	}
	if words, err := decodeOurs(&d, []byte{0xbe}); err != nil || len(words) != 1 || words[0] != "a\x00c" || d.count != 1 {
		t.Errorf("%q, %v, %d entries", words, err, d.count)
	}
}

// TestFieldLargerThanTheTable empties it.
func TestFieldLargerThanTheTable(t *testing.T) {
	large := append([]byte{0x40, 1, 'x', 0x7f, 0x81, 0x1f}, make([]byte, 4096)...)
	for i, after := range [][]byte{{0xbe}, {0x40, 1, 'a', 1, 'b', 0xbe, 0x7e, 1, 'c', 0xbf}} {
		if err := agree([][]byte{{0x40, 1, 'a', 1, 'b'}, large, after}); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// FuzzDecoder: on any bytes both decoders say the same. x/net allows a change of the table after a
// field while the table is empty, and refuses two in a row while it is not; the RFC says otherwise.
func FuzzDecoder(f *testing.F) {
	s := newServer()
	f.Add(s.fields(ok, "server: nginx", "date: x"), s.fields(ok, "server: nginx", "date: y"))
	f.Add([]byte{0x3f, 0xe1, 0x1f, 0x88}, []byte{0x20, 0x3f, 0x01, 0xbe})
	f.Add([]byte{0x40, 1, 'a', 1, 'b', 0x7e, 1, 'c', 0xbf}, []byte{0xbe, 0xbf, 0x0f, 0x2f, 0})
	f.Add([]byte{0x00, 0x82, 0xff, 0xff, 0x00}, []byte{0xff, 0x80, 0x80, 0x80, 0x00})
	f.Add(append([]byte{0x40, 0x7f, 0xa1, 0x1d}, make([]byte, 4000)...), []byte{0x7e, 0, 0x7e, 0, 0xbe})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, block := range [][]byte{a, b} {
			d := newDecoder()
			_, first := integer(block, 5)
			if n, err := d.begin(block); n > first || err == nil && lateResize(&d, block[n:]) {
				return
			}
		}
		if err := agree([][]byte{a, b}); err != nil {
			t.Fatal(err)
		}
	})
}

// lateResize tells whether the table is changed, or tried to be, after a field.
func lateResize(d *decoder, b []byte) bool {
	for len(b) > 0 {
		if b[0]&0xe0 == 0x20 {
			return true
		}
		_, n, err := d.next(b)
		if err != nil {
			// Without the table of the block before an index means nothing: assume the worst.
			return bytes.ContainsFunc(b, func(r rune) bool { return r&0xe0 == 0x20 })
		}
		b = b[n:]
	}
	return false
}

// TestStreamsProperty compares the table of streams with a map.
func TestStreamsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		table, model := newStreams(limit), map[uint32]uint32{}
		next := rapid.SampledFrom([]uint32{1, 101, maxStream - 200}).Draw(t, "first")
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(model) < limit && rapid.Bool().Draw(t, "add") {
				s, place := table.add(next)
				s.tag = next ^ 5
				if &table.places[place] != s {
					t.Fatal("the place is another's")
				}
				model[next] = s.tag
				next += 2
			} else if len(model) > 0 {
				id := rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "remove")
				table.remove(table.find(id))
				delete(model, id)
			}
			for id := range model {
				if s := table.find(id); s == nil || s.tag != model[id] {
					t.Fatalf("stream %d: %+v", id, s)
				}
			}
			if table.find(next) != nil || table.find(0) != nil || table.open != len(model) || len(table.places) > limit {
				t.Fatalf("%d open, %d places, want %d", table.open, len(table.places), len(model))
			}
		}
	})
}

func TestMemory(t *testing.T) {
	var m memory
	for id := uint32(1); id < 30_000; id += 2 {
		m.set(id, false)
		if m.early(id, id+2) {
			t.Fatalf("stream %d is remembered before it ends", id)
		}
		m.set(id, id%3 == 0)
		for back := uint32(0); back < min(id, 2*memorySpan-1); back += 254 {
			if old := id - back; m.early(old, id+2) != (old%3 == 0) {
				t.Fatalf("stream %d after %d", old, id)
			}
		}
	}
	if !m.early(1, 30_001) {
		t.Error("what is forgotten may have been ended early")
	}
}

// answer is one response of the property test and what must come of it.
type answer struct {
	frames []func(s *server)
	want   string
}

// answerProperty draws a response, right or cut off.
func answerProperty(t *rapid.T, id uint32) answer {
	var a answer
	add := func(f func(s *server)) { a.frames = append(a.frames, f) }
	for range rapid.IntRange(0, 2).Draw(t, "interim") {
		add(func(s *server) { s.headers(id, false, ":status: 103", "link: x") })
	}
	status := rapid.SampledFrom([]int{200, 201, 404, 503}).Draw(t, "status")
	body := rapid.SliceOfN(rapid.IntRange(0, 20_000), 0, 5).Draw(t, "body")
	total := 0
	for _, n := range body {
		total += min(n, 16_000)
	}
	pairs := []string{fmt.Sprintf(":status: %d", status), "server: x", fmt.Sprintf("x-id: %d", id)}
	if rapid.Bool().Draw(t, "length") {
		pairs = append(pairs, fmt.Sprintf("content-length: %d", total))
	}
	cut := rapid.IntRange(1, 40).Draw(t, "cut")
	if empty := len(body) == 0 && rapid.Bool().Draw(t, "no data"); empty {
		add(func(s *server) { s.headersIn(id, true, cut, pairs...) })
	} else {
		add(func(s *server) { s.headersIn(id, false, cut, pairs...) })
		trailers := rapid.Bool().Draw(t, "trailers")
		body = append(body, 0)
		for i, n := range body {
			last := i == len(body)-1 && !trailers
			pad := rapid.SampledFrom([]int{-1, -1, 0, 7, 255}).Draw(t, "pad")
			add(func(s *server) { s.data(id, last, min(n, 16_000), pad) })
		}
		if trailers {
			add(func(s *server) { s.headers(id, true, "x-late: 1") })
		}
	}
	a.want = fmt.Sprintf("end %d %d body %d", id, status, total)
	if rapid.IntRange(0, 5).Draw(t, "reset") == 0 {
		a.frames[len(a.frames)-1] = func(s *server) { must(s.WriteRSTStream(id, xhttp2.ErrCodeInternal)) }
		a.want = fmt.Sprintf("reset %d INTERNAL_ERROR", id)
	}
	return a
}

// headersIn writes a header block in frames of at most cut bytes.
func (s *server) headersIn(id uint32, end bool, cut int, pairs ...string) {
	b := s.fields(pairs...)
	n := min(cut, len(b))
	must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: n == len(b), BlockFragment: b[:n]}))
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = min(cut, len(b))
		must(s.WriteContinuation(id, n == len(b), b[:n]))
	}
}

// data writes a DATA frame, padded when pad is not negative.
func (s *server) data(id uint32, end bool, n, pad int) {
	if pad < 0 {
		must(s.WriteData(id, end, make([]byte, n)))
		return
	}
	must(s.WriteDataPadded(id, end, make([]byte, n), make([]byte, pad)))
}

// TestInterleavingProperty mixes the frames of many responses with frames that mean nothing, cuts the
// stream at random, cancels some, and wants each request to end once and as it should.
func TestInterleavingProperty(t *testing.T) {
	k := client(t, func(c *Config) { c.Streams, c.Window, c.ConnWindow = 12, 65535, 1<<20 })
	rapid.Check(t, func(t *rapid.T) {
		c, s := k.Conn(nil), newServer()
		must(s.WriteSettings())
		answers := map[uint32]*answer{}
		var events []Event
		cancelled := map[uint32]bool{}
		push := func() {
			for b := s.buf.Bytes(); len(b) > 0; {
				n := rapid.IntRange(1, len(b)).Draw(t, "piece")
				var err error
				if events, err = c.Feed(b[:n], events); err != nil {
					t.Fatal(err)
				}
				b = b[n:]
			}
			s.buf.Reset()
			c.Advance(len(c.Out()))
		}
		push()
		wants := map[uint32]string{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			open := slices.Sorted(maps.Keys(answers))
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 3 && c.CanOpen():
				id, err := c.Open(&Request{Tag: c.next, Method: "GET", Target: []byte("/")})
				if err != nil {
					t.Fatal(err)
				}
				a := answerProperty(t, id)
				answers[id], wants[id] = &a, a.want
			case what == 3:
				must(s.WritePing(false, [8]byte{}))
				s.raw(0xf0, 0, 0, make([]byte, 30))
			case what == 4 && len(open) > 0:
				id := rapid.SampledFrom(open).Draw(t, "cancel")
				c.Cancel(id)
				cancelled[id] = true
			case len(open) > 0:
				id := rapid.SampledFrom(open).Draw(t, "stream")
				a := answers[id]
				a.frames[0](s)
				if a.frames = a.frames[1:]; len(a.frames) == 0 {
					delete(answers, id)
				}
				push()
			}
		}
		for id, a := range answers {
			for _, f := range a.frames {
				f(s)
				push()
			}
			delete(answers, id)
		}
		push()
		checkEnds(t, events, wants, cancelled)
		if !c.Idle() {
			t.Fatalf("%d in flight", c.InFlight())
		}
	})
}

// checkEnds wants each request to end once, as foreseen, and a cancelled one not to end after that.
func checkEnds(t *rapid.T, events []Event, wants map[uint32]string, cancelled map[uint32]bool) {
	ends := map[uint32]string{}
	for _, e := range events {
		if e.Kind == FirstByte || e.Kind == Headers {
			continue
		}
		if e.Tag != e.Stream || ends[e.Stream] != "" {
			t.Fatalf("%s after %q", told(e), ends[e.Stream])
		}
		ends[e.Stream] = told(e)
	}
	for id, want := range wants {
		if got := ends[id]; got != want && (got != "" || !cancelled[id]) {
			t.Fatalf("stream %d: %q; want %q", id, got, want)
		}
	}
}

// FuzzFeed: no stream of bytes makes it panic, how it is cut changes nothing, memory is bounded and
// each request ends at most once.
func FuzzFeed(f *testing.F) {
	for _, b := range behaviours() {
		if stream := b.stream(); len(stream) < 4<<10 {
			f.Add(stream, uint16(1), uint8(0))
			f.Add(stream, uint16(5), uint8(3))
		}
	}
	k := small(f)
	f.Fuzz(func(t *testing.T, stream []byte, size uint16, cancel uint8) {
		run := func(sizes ...int) ([]Event, []byte, error) {
			c := k.Conn(nil)
			for tag, r := range []Request{{Method: "GET"}, {Method: "POST", Body: make([]byte, 70_000)}, {Method: "HEAD"}, {Method: "GET"}} {
				r.Tag, r.Target = uint32(tag), []byte("/")
				open(t, c, r)
			}
			c.Advance(len(c.Out()))
			if cancel < 8 {
				c.Cancel(uint32(cancel))
			}
			events, err := feed(c, stream, sizes...)
			if cap(c.part) > maxFrame+keepBuffer || cap(c.fragment) > 2*(maxFrame+keepBuffer) || sound(&c.dec) != nil {
				t.Fatalf("part %d, fragment %d, %v", cap(c.part), cap(c.fragment), sound(&c.dec))
			}
			out := bytes.Clone(c.Out())
			return c.Close(events), out, err
		}
		events, out, err := run(max(1, len(stream)))
		cut, cutOut, cutErr := run(int(size))
		if fmt.Sprint(err) != fmt.Sprint(cutErr) || tell(events) != tell(cut) || !bytes.Equal(out, cutOut) {
			t.Fatalf("whole  %s, %v\npieces %s, %v", tell(events), err, tell(cut), cutErr)
		}
		var broke *ConnError
		if err != nil && !errors.As(err, &broke) {
			t.Fatal(err)
		}
		ends := map[uint32]bool{}
		for _, e := range events {
			switch e.Kind {
			case FirstByte, Headers, GoAway:
			default:
				if ends[e.Tag] {
					t.Fatalf("%s ends twice: %s", told(e), tell(events))
				}
				ends[e.Tag] = true
			}
		}
		if want := 4; len(ends) != want && (cancel > 7 || cancel%2 == 0 || len(ends) != want-1) {
			t.Fatalf("%d of 4 requests ended: %s", len(ends), tell(events))
		}
	})
}
