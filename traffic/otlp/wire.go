package otlp

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Protobuf, as far as traces need it: TracesData and ExportTraceServiceRequest, which are the same on
// the wire. Fields come in any order, and some exporters write them backwards.

// The tags of the fields that are looked at: number<<3 | wire type.
const (
	tagResourceSpans = 1<<3 | delimited    // of TracesData
	tagScopeSpans    = 2<<3 | delimited    // of ResourceSpans
	tagOldScopeSpans = 1000<<3 | delimited // its name was instrumentation_library_spans
	tagSpan          = 2<<3 | delimited    // of ScopeSpans
	tagTraceID       = 1<<3 | delimited    // of Span, as all that follow
	tagKind          = 6<<3 | varint
	tagStart         = 7<<3 | fixed64
	tagEnd           = 8<<3 | fixed64
	tagAttribute     = 9<<3 | delimited
	tagLogTime       = 1<<3 | fixed64   // where a span has its trace ID, a log record has its time
	tagMetricSum     = 7<<3 | delimited // where a span has its start, a metric has its sum
	tagKey           = 1<<3 | delimited // of KeyValue
	tagValue         = 2<<3 | delimited
	tagString        = 1<<3 | delimited // of AnyValue, as all that follow
	tagBool          = 2<<3 | varint
	tagInt           = 3<<3 | varint
	tagDouble        = 4<<3 | fixed64
)

// The wire types. Groups (3 and 4) are in no message of OTLP, so they are taken for damage.
const (
	varint    = 0
	fixed64   = 1
	delimited = 2
	fixed32   = 5
)

const (
	maxHeader  = 20        // bytes of a field's tag and of its number or length
	maxKey     = 64        // bytes of an attribute's key that can be one that matters
	maxAtOnce  = 64 << 10  // bytes of a span or an attribute that is read in one piece; larger ones field by field
	traceIDLen = 16        // bytes
	endless    = 1<<63 - 1 // the end of a message whose length is not known
)

const (
	cutMessage = "the message is cut short"
	noField    = "bytes that are no protobuf field"
	tooLong    = "a field is longer than the message that holds it"
)

// field reads the field at the start of b: its tag, and its value, which is the length of what follows
// if it is delimited. It takes size bytes; 0 when b is cut short, and -1 when there is no field.
func field(b []byte) (tag, value uint64, size int) {
	tag, n := uvarint(b)
	if n <= 0 {
		return 0, 0, n
	}
	if tag>>3 == 0 || tag > math.MaxUint32 {
		return 0, 0, -1
	}
	rest := b[n:]
	switch tag & 7 {
	case varint, delimited:
		v, m := uvarint(rest)
		if m <= 0 {
			return 0, 0, m
		}
		return tag, v, n + m
	case fixed64:
		if len(rest) < 8 {
			return 0, 0, 0
		}
		return tag, binary.LittleEndian.Uint64(rest), n + 8
	case fixed32:
		if len(rest) < 4 {
			return 0, 0, 0
		}
		return tag, uint64(binary.LittleEndian.Uint32(rest)), n + 4
	}
	return 0, 0, -1
}

// uvarint is binary.Uvarint with a short way for one byte, and -1 for every number past 64 bits.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	v, n := binary.Uvarint(b)
	return v, max(n, -1)
}

// payload cuts a delimited field's bytes out of b, where they start at from.
func payload(b []byte, from int, length uint64) (out []byte, ok bool) {
	if length > uint64(len(b)-from) {
		return nil, false
	}
	return b[from : from+int(length)], true
}

// header reads the next field of a message that ends at end.
func (s *scanner) header(end int64) (tag, value uint64, ok bool) {
	within := int(min(maxHeader, end-s.at()))
	b := s.buf[s.r:s.w]
	if len(b) < within {
		b = s.fill(within)
	}
	if len(b) > within {
		b = b[:within]
	}
	tag, value, size := field(b)
	switch {
	case size < 0:
		return 0, 0, s.bad(noField)
	case size == 0 && len(b) < within:
		return 0, 0, s.bad(cutMessage)
	case size == 0:
		return 0, 0, s.bad(tooLong)
	}
	if tag&7 == delimited && value > uint64(end-s.at()-int64(size)) {
		return 0, 0, s.bad(tooLong) // where the field starts: what follows may be sound
	}
	s.r += size
	return tag, value, true
}

// over passes the rest of a field.
func (s *scanner) over(tag, value uint64) bool {
	if tag&7 != delimited {
		return true
	}
	return s.discard(int64(value)) || s.bad(cutMessage)
}

// stepField reads a message's next field or its end.
func (s *Source) stepField(f *frame) bool {
	in := &s.in
	if in.at() == f.end {
		return s.pop()
	}
	if f.end == endless && len(in.fill(1)) == 0 {
		return s.messageEnd()
	}
	tag, value, ok := in.header(f.end)
	if !ok {
		return false
	}
	switch {
	case f.place == inDocument && tag == tagResourceSpans:
		s.doc.hasRS = true
		return s.enter(inResource, value)
	case f.place == inResource && (tag == tagScopeSpans || tag == tagOldScopeSpans) && (!f.taken || f.tag == tag):
		f.taken, f.tag = true, tag
		return s.enter(inScope, value)
	case f.place == inScope && tag == tagSpan:
		return in.message(&s.span, int64(value)) && s.take()
	}
	return in.over(tag, value)
}

// enter goes into a message of the given length.
func (s *Source) enter(p place, length uint64) bool {
	s.stack = append(s.stack, frame{place: p, end: s.in.at() + int64(length)})
	return true
}

// messageEnd ends a message that lasts until its stream ends, if it ended well.
func (s *Source) messageEnd() bool {
	if problem := s.streamProblem(); problem != "" {
		return s.in.bad(problem)
	}
	return s.pop()
}

// message reads a span of the given length.
func (s *scanner) message(p *span, length int64) bool {
	p.reset()
	if length <= maxAtOnce {
		b := s.fill(int(length))
		if len(b) < int(length) {
			return s.bad(cutMessage)
		}
		s.r += len(b)
		return p.fields(b) || s.bad(noField)
	}
	end := s.at() + length
	for s.at() < end {
		tag, value, ok := s.header(end)
		switch {
		case !ok:
			return false
		case tag == tagAttribute && value <= maxAtOnce:
			b := s.fill(int(value))
			if len(b) < int(value) {
				return s.bad(cutMessage)
			}
			s.r += len(b)
			ok = p.attribute(b) || s.bad(noField)
		case tag == tagAttribute:
			ok = s.longAttribute(p, int64(value))
		default:
			p.field(tag, value)
			ok = s.over(tag, value)
		}
		if !ok {
			return false
		}
	}
	return true
}

// longAttribute reads an attribute whose value is too long to be kept: it is as good as absent.
func (s *scanner) longAttribute(p *span, length int64) bool {
	end := s.at() + length
	for s.at() < end {
		tag, value, ok := s.header(end)
		if !ok {
			return false
		}
		if tag == tagKey && value <= maxKey {
			name := s.fill(int(value))
			p.set[p.attributeOf(name)] = extent{}
		}
		if !s.over(tag, value) {
			return false
		}
	}
	return true
}

// fields reads a whole span.
func (p *span) fields(b []byte) bool {
	for i := 0; i < len(b); {
		tag, value, size := field(b[i:])
		if size <= 0 {
			return false
		}
		i += size
		if tag&7 != delimited {
			p.field(tag, value)
			continue
		}
		inner, ok := payload(b, i, value)
		if !ok {
			return false
		}
		i += len(inner)
		if tag == tagAttribute {
			if !p.attribute(inner) {
				return false
			}
			continue
		}
		p.field(tag, value)
	}
	return true
}

// field takes a field of a span that is no attribute; of a delimited one only the length is looked at.
func (p *span) field(tag, value uint64) {
	switch tag {
	case tagKind:
		p.number(int32(value))
	case tagStart:
		p.start = instant(value)
	case tagEnd:
		p.end = instant(value)
	case tagLogTime:
		p.signal = logs
	case tagTraceID:
		if value != traceIDLen && value != 0 { // a metric has its name here
			p.signal = metrics
		}
	case tagMetricSum:
		p.signal = metrics
	}
}

// number takes the kind by its number.
func (p *span) number(n int32) {
	if n >= 0 && n < int32(unknown) {
		p.kind = kind(n)
		return
	}
	p.kind = unknown
	from := len(p.scratch)
	p.scratch = strconv.AppendInt(p.scratch, int64(n), 10)
	p.kindText = extent{from, len(p.scratch)}
}

// instant is a timestamp, 0 for one past 63 bits, which is none.
func instant(ns uint64) uint64 {
	if ns > math.MaxInt64 {
		return 0
	}
	return ns
}

// attribute reads a KeyValue. Its value may stand before its key.
func (p *span) attribute(b []byte) bool {
	var key, value []byte
	for i := 0; i < len(b); {
		tag, v, size := field(b[i:])
		if size <= 0 {
			return false
		}
		i += size
		if tag&7 != delimited {
			continue
		}
		inner, ok := payload(b, i, v)
		if !ok {
			return false
		}
		i += len(inner)
		switch tag {
		case tagKey:
			key = inner
		case tagValue:
			value = inner
		}
	}
	which := p.attributeOf(key)
	if which == otherAttribute {
		return true
	}
	p.set[which] = extent{}
	return p.anyValue(value, &p.set[which])
}

// anyValue reads an AnyValue: the text of a string, a number or a boolean.
func (p *span) anyValue(b []byte, to *extent) bool {
	for i := 0; i < len(b); {
		tag, v, size := field(b[i:])
		if size <= 0 {
			return false
		}
		i += size
		from := len(p.scratch)
		switch tag {
		case tagString:
			text, ok := payload(b, i, v)
			if !ok {
				return false
			}
			if len(text) > maxText {
				text = nil
			}
			p.scratch = append(p.scratch, text...)
		case tagBool:
			p.scratch = strconv.AppendBool(p.scratch, v != 0)
		case tagInt:
			p.scratch = strconv.AppendInt(p.scratch, int64(v), 10)
		case tagDouble:
			p.scratch = strconv.AppendFloat(p.scratch, math.Float64frombits(v), 'f', -1, 64)
		}
		*to = extent{from, len(p.scratch)}
		if tag&7 == delimited {
			inner, ok := payload(b, i, v)
			if !ok {
				return false
			}
			i += len(inner)
		}
	}
	return true
}
