package http2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
)

// behaviour is what a server does to two requests, on streams 1 and 3, and what must come of it.
type behaviour struct {
	name   string
	method string // of the request on stream 1; GET when empty
	body   int    // of that request
	bare   bool   // the server does not begin with SETTINGS
	serve  func(s *server)
	events string // what is told
	sends  string // what we send, besides the acknowledgement of SETTINGS
	code   Code   // of the connection error, where there is one
	broken bool   // there is one, and both requests are broken by it, after the events
}

const ok = ":status: 200"

func word(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

func behaviours() []behaviour {
	return slices.Concat(answers(), malformedHeaders(), wrongData(), wrongControl(), floods(), goodbyes())
}

// answers are unusual and right.
func answers() []behaviour {
	return []behaviour{
		{name: "headers and data", serve: func(s *server) {
			s.headers(1, false, ok, "content-length: 2")
			must(s.WriteData(1, true, []byte("ok")))
		}, events: "first 1; headers 1 200; end 1 200 body 2"},
		{name: "END_STREAM on headers", serve: func(s *server) { s.headers(1, true, ":status: 404") },
			events: "first 1; headers 1 404; end 1 404 body 0"},
		{name: "END_STREAM on an empty frame", serve: func(s *server) {
			s.headers(1, false, ok)
			must(s.WriteData(1, false, []byte("abc")))
			must(s.WriteData(1, true, nil))
		}, events: "first 1; headers 1 200; end 1 200 body 3"},
		{name: "trailers", serve: func(s *server) {
			s.headers(1, false, ok)
			must(s.WriteData(1, false, []byte("abc")))
			s.headers(1, true, "grpc-status: 0")
		}, events: "first 1; headers 1 200; end 1 200 body 3"},
		{name: "interleaved streams", serve: func(s *server) {
			s.headers(3, false, ok)
			s.headers(1, false, ":status: 201")
			must(s.WriteData(1, false, []byte("a")))
			must(s.WriteData(3, true, []byte("bcd")))
			must(s.WriteData(1, true, []byte("e")))
		}, events: "first 3; headers 3 200; first 1; headers 1 201; end 3 200 body 3; end 1 201 body 2"},
		{name: "padding", serve: func(s *server) {
			must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: s.fields(ok), PadLength: 9}))
			must(s.WriteDataPadded(1, false, []byte("abc"), make([]byte, 255)))
			must(s.WriteDataPadded(1, true, nil, make([]byte, 3)))
		}, events: "first 1; headers 1 200; end 1 200 body 3"},
		{name: "priority in headers", serve: func(s *server) {
			must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: s.fields(ok),
				Priority: xhttp2.PriorityParam{StreamDep: 3, Weight: 7}, PadLength: 1}))
		}, events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "PRIORITY frames are ignored", serve: func(s *server) {
			must(s.WritePriority(1, xhttp2.PriorityParam{StreamDep: 3}))
			must(s.WritePriority(99, xhttp2.PriorityParam{StreamDep: 1}))
		}},
		{name: "headers in many frames", serve: func(s *server) {
			b := s.fields(ok, "a: 1", "b: 2")
			must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: b[:1]}))
			must(s.WriteContinuation(1, false, nil))
			must(s.WriteContinuation(1, false, b[1:3]))
			must(s.WriteContinuation(1, true, b[3:]))
		}, events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "interim responses", serve: func(s *server) {
			s.headers(1, false, ":status: 100")
			s.headers(1, false, ":status: 103", "link: </a.css>")
			s.headers(1, true, ok)
		}, events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "HEAD with a length", method: "HEAD", serve: func(s *server) { s.headers(1, true, ok, "content-length: 99") },
			events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "HEAD ended by an empty frame", method: "HEAD", serve: func(s *server) {
			s.headers(1, false, ok, "content-length: 99")
			must(s.WriteData(1, true, nil))
		}, events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "304 with a length", serve: func(s *server) { s.headers(1, true, ":status: 304", "content-length: 99") },
			events: "first 1; headers 1 304; end 1 304 body 0"},
		{name: "equal lengths twice", serve: func(s *server) { s.headers(1, true, ok, "content-length: 0", "content-length: 0") },
			events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "white space around a value", serve: func(s *server) { s.headers(1, true, ok, "x:  a ") },
			events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "te: trailers", serve: func(s *server) { s.headers(1, true, ok, "te: trailers") },
			events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "answer before the request is whole", method: "POST", body: 100_000, serve: func(s *server) {
			s.headers(1, true, ":status: 413")
			must(s.WriteRSTStream(1, xhttp2.ErrCodeNo))
		}, events: "first 1; headers 1 413; end 1 413 body 0", sends: "RST 1 CANCEL"},
		{name: "unknown frames", serve: func(s *server) {
			s.raw(0xa, 0xff, 0, []byte("alt-svc"))
			s.raw(0xee, 0, 1, make([]byte, 16384))
			s.raw(0xee, 0, 77, nil)
			s.headers(1, true, ok)
		}, events: "first 1; headers 1 200; end 1 200 body 0"},
		{name: "unknown settings", serve: func(s *server) { must(s.WriteSettings(xhttp2.Setting{ID: 0x99, Val: 1 << 31})) },
			sends: "SETTINGS ack"},
		{name: "acknowledged settings", serve: func(s *server) { must(s.WriteSettingsAck()) }},
		{name: "PING", serve: func(s *server) { must(s.WritePing(false, [8]byte{'h', 'e', 'l', 'l', 'o'})) },
			sends: `PING ack "hello\x00\x00\x00"`},
		{name: "PING acknowledged unasked", serve: func(s *server) { must(s.WritePing(true, [8]byte{})) }},
		{name: "reserved bit set", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders|flagEndStream, 1<<31|1, s.fields(ok)) },
			events: "first 1; headers 1 200; end 1 200 body 0"},
	}
}

func malformedHeaders() []behaviour {
	block := func(name string, err error, pairs ...string) behaviour {
		return behaviour{name: name, serve: func(s *server) { s.headers(1, true, pairs...) },
			events: fmt.Sprintf("first 1; invalid 1: %v", err), sends: "RST 1 PROTOCOL_ERROR"}
	}
	all := []behaviour{
		block("no status", ErrPseudo, "server: x"),
		block("no fields", ErrPseudo),
		block("two statuses", ErrPseudo, ok, ok),
		block("status after a field", ErrPseudo, "server: x", ok),
		block("status of two digits", ErrPseudo, ":status: 20"),
		block("status that is no number", ErrPseudo, ":status: 2x0"),
		block("status 000", ErrPseudo, ":status: 000"),
		block("status 600", ErrPseudo, ":status: 600"),
		block("status 101", ErrPseudo, ":status: 101"),
		block("pseudo-header of a request", ErrPseudo, ok, ":path: /"),
		block("unknown pseudo-header", ErrPseudo, ok, ":proto: x"),
		block("upper case", ErrField, ok, "Server: x"),
		block("space in a name", ErrField, ok, "a b: x"),
		block("empty name", ErrField, ok, "\x00: x"),
		block("line end in a value", ErrField, ok, "a: x\r\nb: y"),
		block("NUL in a value", ErrField, ok, "a: x\x00"),
		block("connection", ErrConnection, ok, "connection: close"),
		block("keep-alive", ErrConnection, ok, "keep-alive: 5"),
		block("transfer-encoding", ErrConnection, ok, "transfer-encoding: chunked"),
		block("upgrade", ErrConnection, ok, "upgrade: h2c"),
		block("te: gzip", ErrConnection, ok, "te: gzip"),
		block("length that is no number", ErrLength, ok, "content-length: +1"),
		block("length too large", ErrLength, ok, "content-length: 99999999999999999999"),
		block("empty length", ErrLength, ok, "content-length: "),
		block("two lengths", ErrLength, ok, "content-length: 1", "content-length: 2"),
		block("interim response that ends the stream", ErrOrder, ":status: 103"),
	}
	trailer := func(name string, err error, end bool, pairs ...string) behaviour {
		return behaviour{name: name, serve: func(s *server) {
			s.headers(1, false, ok)
			s.headers(1, end, pairs...)
		}, events: fmt.Sprintf("first 1; headers 1 200; invalid 1: %v", err), sends: "RST 1 PROTOCOL_ERROR"}
	}
	return append(all,
		trailer("trailers without an end", ErrOrder, false, "a: b"),
		trailer("status in trailers", ErrPseudo, true, ok),
		trailer("connection in trailers", ErrConnection, true, "connection: close"),
		behaviour{name: "headers beyond the limit", serve: func(s *server) {
			s.headers(1, false, ok, "a: "+strings.Repeat("x", 2000))
			must(s.WriteData(1, true, []byte("late")))
			s.headers(3, true, ok)
		}, events: "first 1; invalid 1: http2: headers exceed the limit; first 3; headers 3 200; end 3 200 body 0",
			sends: "RST 1 CANCEL"},
		behaviour{name: "HPACK bomb", serve: func(s *server) { // one large entry, then one byte for each use of it
			big := s.fields(ok, "a: "+strings.Repeat("x", 900))
			s.raw(frameHeaders, flagEndHeaders, 1, append(big, bytes.Repeat([]byte{0x80 | 62}, 10)...))
			s.headers(3, true, ok)
		}, events: "first 1; invalid 1: http2: headers exceed the limit; first 3; headers 3 200; end 3 200 body 0",
			sends: "RST 1 CANCEL"},
		behaviour{name: "HPACK bomb beyond all bounds", serve: func(s *server) {
			big := s.fields(ok, "a: "+strings.Repeat("x", 900))
			s.raw(frameHeaders, flagEndHeaders, 1, append(big, bytes.Repeat([]byte{0x80 | 62}, 1000)...))
		}, events: "first 1", broken: true, code: EnhanceYourCalm},
		behaviour{name: "index beyond the table", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders, 1, []byte{0x80 | 62}) },
			events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "index 0", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders, 1, []byte{0x80}) },
			events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "integer without an end", serve: func(s *server) {
			s.raw(frameHeaders, flagEndHeaders, 1, bytes.Repeat([]byte{0xff}, 20))
		}, events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "string beyond the block", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders, 1, []byte{0, 1, 'a', 9, 'b'}) },
			events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "malformed Huffman code", serve: func(s *server) {
			s.raw(frameHeaders, flagEndHeaders, 1, []byte{0, 1, 'a', 0x84, 0xff, 0xff, 0xff, 0xff})
		}, events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "table larger than announced", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders, 1, []byte{0x3f, 0xe2, 0x1f, 0x88}) },
			events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "table changed after a field", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders, 1, []byte{0x88, 0x20}) },
			events: "first 1", broken: true, code: CompressionError},
		behaviour{name: "headers on an idle stream", serve: func(s *server) { s.headers(5, true, ok) }, broken: true, code: ProtocolError},
		behaviour{name: "headers on a stream of the server's", serve: func(s *server) { s.headers(2, true, ok) }, broken: true, code: ProtocolError},
		behaviour{name: "headers on stream 0", serve: func(s *server) { s.raw(frameHeaders, flagEndHeaders, 0, s.fields(ok)) },
			broken: true, code: ProtocolError},
		behaviour{name: "headers too short for their padding", serve: func(s *server) {
			s.raw(frameHeaders, flagEndHeaders|flagPadded, 1, nil)
		}, events: "first 1", broken: true, code: FrameSizeError},
		behaviour{name: "padding beyond the headers", serve: func(s *server) {
			s.raw(frameHeaders, flagEndHeaders|flagPadded, 1, []byte{2, 0x88})
		}, events: "first 1", broken: true, code: ProtocolError},
		behaviour{name: "headers too short for their priority", serve: func(s *server) {
			s.raw(frameHeaders, flagEndHeaders|flagPriority, 1, []byte{0, 0, 0, 0})
		}, events: "first 1", broken: true, code: FrameSizeError},
		behaviour{name: "another frame inside a header block", serve: func(s *server) {
			must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: s.fields(ok)}))
			must(s.WritePing(false, [8]byte{}))
		}, events: "first 1", broken: true, code: ProtocolError},
		behaviour{name: "CONTINUATION of another stream", serve: func(s *server) {
			must(s.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: s.fields(ok)}))
			must(s.WriteContinuation(3, true, nil))
		}, events: "first 1", broken: true, code: ProtocolError},
		behaviour{name: "CONTINUATION alone", serve: func(s *server) { must(s.WriteContinuation(1, true, nil)) }, broken: true, code: ProtocolError},
	)
}

func wrongData() []behaviour {
	// after writes an answer's headers and then what it is given.
	after := func(name string, err error, code string, pairs []string, frames func(s *server)) behaviour {
		return behaviour{name: name, serve: func(s *server) {
			s.headers(1, false, append([]string{ok}, pairs...)...)
			frames(s)
		}, events: fmt.Sprintf("first 1; headers 1 200; invalid 1: %v", err), sends: code}
	}
	four := func(s *server) { must(s.WriteData(1, true, []byte("four"))) }
	big := make([]byte, 16384)
	return []behaviour{
		after("body longer than its length", ErrLength, "RST 1 PROTOCOL_ERROR", []string{"content-length: 3"}, four),
		after("body shorter than its length", ErrLength, "", []string{"content-length: 5"}, four),
		after("no body in spite of a length", ErrLength, "", []string{"content-length: 5"}, func(s *server) { s.headers(1, true, "a: b") }),
		after("length beyond the limit", ErrBody, "RST 1 CANCEL", []string{"content-length: 40001"}, func(*server) {}),
		after("body beyond the limit", ErrBody, "RST 1 CANCEL", nil, func(s *server) {
			for range 3 {
				must(s.WriteData(1, false, big))
			}
		}),
		{name: "HEAD with a body", method: "HEAD", serve: func(s *server) { s.headers(1, false, ok); four(s) },
			events: "first 1; headers 1 200; invalid 1: " + ErrBodyless.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "204 with a body", serve: func(s *server) { s.headers(1, false, ":status: 204"); four(s) },
			events: "first 1; headers 1 204; invalid 1: " + ErrBodyless.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "304 with a body", serve: func(s *server) { s.headers(1, false, ":status: 304"); four(s) },
			events: "first 1; headers 1 304; invalid 1: " + ErrBodyless.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "HEAD with a padded body", method: "HEAD", serve: func(s *server) {
			s.headers(1, false, ok)
			must(s.WriteDataPadded(1, true, nil, make([]byte, 3)))
			s.headers(3, false, ":status: 204")
			must(s.WriteDataPadded(3, true, []byte("x"), make([]byte, 3)))
		}, events: "first 1; headers 1 200; end 1 200 body 0; first 3; headers 3 204; invalid 3: " + ErrBodyless.Error(),
			sends: "RST 3 PROTOCOL_ERROR"},
		{name: "a short answer before the request is whole", method: "POST", body: 100_000, serve: func(s *server) {
			s.headers(1, true, ok, "content-length: 3")
		}, events: "first 1; headers 1 200; invalid 1: " + ErrLength.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "data before headers", serve: four, events: "invalid 1: " + ErrOrder.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "data after an interim response", serve: func(s *server) { s.headers(1, false, ":status: 100"); four(s) },
			events: "first 1; invalid 1: " + ErrOrder.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "data after the end", serve: func(s *server) { s.headers(1, true, ok); four(s) },
			events: "first 1; headers 1 200; end 1 200 body 0; broken 3", broken: true, code: StreamClosed},
		{name: "headers after the end", serve: func(s *server) { s.headers(1, true, ok); s.headers(1, true, ok) },
			events: "first 1; headers 1 200; end 1 200 body 0; broken 3", broken: true, code: StreamClosed},
		{name: "data on an idle stream", serve: func(s *server) { must(s.WriteData(5, true, nil)) }, broken: true, code: ProtocolError},
		{name: "data on stream 0", serve: func(s *server) { s.raw(frameData, 0, 0, []byte("x")) }, broken: true, code: ProtocolError},
		{name: "data on a stream of the server's", serve: func(s *server) { must(s.WriteData(2, true, nil)) }, broken: true, code: ProtocolError},
		{name: "data too short for its padding", serve: func(s *server) { s.headers(1, false, ok); s.raw(frameData, flagPadded, 1, nil) },
			events: "first 1; headers 1 200", broken: true, code: FrameSizeError},
		{name: "padding as long as the frame", serve: func(s *server) { s.headers(1, false, ok); s.raw(frameData, flagPadded, 1, []byte{2, 0}) },
			events: "first 1; headers 1 200", broken: true, code: ProtocolError},
		{name: "frame too large", serve: func(s *server) { s.headers(1, false, ok); s.raw(frameData, 0, 1, make([]byte, 16385)) },
			events: "first 1; headers 1 200", broken: true, code: FrameSizeError},
		{name: "unknown frame too large", serve: func(s *server) { s.raw(0xee, 0, 1, make([]byte, 16385)) }, broken: true, code: FrameSizeError},
	}
}

func wrongControl() []behaviour {
	frame := func(name string, code Code, kind, flags uint8, stream uint32, payload []byte) behaviour {
		return behaviour{name: name, serve: func(s *server) { s.raw(kind, flags, stream, payload) }, broken: true, code: code}
	}
	setting := func(name string, code Code, id uint16, v uint32) behaviour {
		return frame(name, code, frameSettings, 0, 0, appendSetting(nil, id, v))
	}
	return []behaviour{
		{name: "HTTP/1.1", bare: true, serve: func(s *server) { s.buf.WriteString("HTTP/1.1 400 Bad Request\r\n\r\n") }, broken: true, code: ProtocolError},
		{name: "no SETTINGS first", bare: true, serve: func(s *server) { s.headers(1, true, ok) }, broken: true, code: ProtocolError},
		{name: "an acknowledgement first", bare: true, serve: func(s *server) { must(s.WriteSettingsAck()) }, broken: true, code: ProtocolError},
		frame("SETTINGS on a stream", ProtocolError, frameSettings, 0, 1, nil),
		frame("SETTINGS of 5 bytes", FrameSizeError, frameSettings, 0, 0, make([]byte, 5)),
		frame("SETTINGS acknowledged with a payload", FrameSizeError, frameSettings, flagAck, 0, make([]byte, 6)),
		setting("a server that wants pushes", ProtocolError, settingPush, 1),
		setting("window too large", FlowControlError, settingWindow, 1<<31),
		setting("frames too small", ProtocolError, settingFrame, 16383),
		setting("frames too large", ProtocolError, settingFrame, 1<<24),
		frame("PING of 7 bytes", FrameSizeError, framePing, 0, 0, make([]byte, 7)),
		frame("PING on a stream", ProtocolError, framePing, 0, 1, make([]byte, 8)),
		frame("GOAWAY of 7 bytes", FrameSizeError, frameGoAway, 0, 0, make([]byte, 7)),
		frame("GOAWAY on a stream", ProtocolError, frameGoAway, 0, 1, make([]byte, 8)),
		frame("PRIORITY on stream 0", ProtocolError, framePriority, 0, 0, make([]byte, 5)),
		{name: "PRIORITY of 4 bytes", serve: func(s *server) { s.raw(framePriority, 0, 1, make([]byte, 4)) },
			events: "invalid 1: " + ErrFrameSize.Error(), sends: "RST 1 FRAME_SIZE_ERROR"},
		frame("RST_STREAM of 5 bytes", FrameSizeError, frameReset, 0, 1, make([]byte, 5)),
		frame("RST_STREAM on stream 0", ProtocolError, frameReset, 0, 0, make([]byte, 4)),
		frame("RST_STREAM on an idle stream", ProtocolError, frameReset, 0, 5, make([]byte, 4)),
		frame("WINDOW_UPDATE of 3 bytes", FrameSizeError, frameWindowUpdate, 0, 0, make([]byte, 3)),
		frame("WINDOW_UPDATE of 0 for the connection", ProtocolError, frameWindowUpdate, 0, 0, word(0)),
		frame("WINDOW_UPDATE overflows the connection", FlowControlError, frameWindowUpdate, 0, 0, word(1<<31-1)),
		frame("WINDOW_UPDATE on an idle stream", ProtocolError, frameWindowUpdate, 0, 5, word(1)),
		frame("PUSH_PROMISE", ProtocolError, framePushPromise, flagEndHeaders, 1, []byte{0, 0, 0, 2, 0x82}),
		{name: "WINDOW_UPDATE of 0 for a stream", serve: func(s *server) { s.raw(frameWindowUpdate, 0, 1, word(0)) },
			events: "invalid 1: " + ErrWindow.Error(), sends: "RST 1 PROTOCOL_ERROR"},
		{name: "WINDOW_UPDATE overflows a stream", serve: func(s *server) { s.raw(frameWindowUpdate, 0, 1, word(1<<31-1)) },
			events: "invalid 1: " + ErrWindow.Error(), sends: "RST 1 FLOW_CONTROL_ERROR"},
		{name: "a setting overflows the window of a stream", serve: func(s *server) {
			s.raw(frameWindowUpdate, 0, 1, word(1<<31-1-65535))
			must(s.WriteSettings(xhttp2.Setting{ID: settingWindow, Val: 65536}))
		}, broken: true, code: FlowControlError},
		{name: "window of a stream exceeded", serve: func(s *server) { // by padding, which counts
			s.headers(1, false, ok)
			for range 256 {
				must(s.WriteDataPadded(1, false, []byte("x"), make([]byte, 255)))
			}
			s.headers(3, true, ok)
		}, events: "first 1; headers 1 200; invalid 1: " + ErrWindow.Error() + "; first 3; headers 3 200; end 3 200 body 0",
			sends: "RST 1 FLOW_CONTROL_ERROR"},
		{name: "window of the connection exceeded", serve: func(s *server) {
			must(s.WriteRSTStream(1, xhttp2.ErrCodeCancel))
			for range 65 {
				must(s.WriteData(1, false, make([]byte, 16384)))
			}
		}, events: "reset 1 CANCEL; broken 3", broken: true, code: FlowControlError},
	}
}

func floods() []behaviour {
	flood := func(name string, once func(s *server)) behaviour {
		return behaviour{name: name, serve: func(s *server) {
			for range maxWaste + 20 {
				once(s)
			}
		}, broken: true, code: EnhanceYourCalm}
	}
	all := []behaviour{
		flood("flood of SETTINGS", func(s *server) { must(s.WriteSettings()) }),
		flood("flood of acknowledgements", func(s *server) { must(s.WriteSettingsAck()) }),
		flood("flood of PING", func(s *server) { must(s.WritePing(false, [8]byte{})) }),
		flood("flood of PRIORITY", func(s *server) { must(s.WritePriority(1, xhttp2.PriorityParam{})) }),
		flood("flood of WINDOW_UPDATE", func(s *server) { must(s.WriteWindowUpdate(1, 1)) }),
		flood("flood of unknown frames", func(s *server) { s.raw(0xee, 0, 0, nil) }),
	}
	opened := func(b behaviour, first func(s *server), events string) behaviour {
		serve := b.serve
		b.serve = func(s *server) { first(s); serve(s) }
		b.events = events
		return b
	}
	return append(all,
		opened(flood("flood of empty data", func(s *server) { must(s.WriteData(1, false, nil)) }),
			func(s *server) { s.headers(1, false, ok) }, "first 1; headers 1 200"),
		opened(flood("flood of padding", func(s *server) { must(s.WriteDataPadded(1, false, nil, nil)) }),
			func(s *server) { s.headers(1, false, ok) }, "first 1; headers 1 200"),
		opened(flood("flood of empty CONTINUATION", func(s *server) { must(s.WriteContinuation(1, false, nil)) }),
			func(s *server) { s.raw(frameHeaders, 0, 1, s.fields(ok)) }, "first 1"),
		opened(flood("flood of RST_STREAM", func(s *server) { must(s.WriteRSTStream(1, xhttp2.ErrCodeCancel)) }),
			func(s *server) { s.headers(1, true, ok) }, "first 1; headers 1 200; end 1 200 body 0; broken 3"),
		opened(flood("flood on a stream that was reset", func(s *server) { must(s.WriteData(1, false, nil)) }),
			func(s *server) { must(s.WriteRSTStream(1, xhttp2.ErrCodeCancel)) }, "reset 1 CANCEL; broken 3"),
		behaviour{name: "CONTINUATION beyond the limit", serve: func(s *server) {
			s.raw(frameHeaders, 0, 1, s.fields(ok))
			for range 5 {
				must(s.WriteContinuation(1, false, make([]byte, 5000)))
			}
		}, events: "first 1", broken: true, code: EnhanceYourCalm},
		behaviour{name: "flood of interim responses", serve: func(s *server) {
			for range maxInterim + 1 {
				s.headers(1, false, ":status: 102")
			}
		}, events: "first 1; invalid 1: " + ErrInterim.Error(), sends: "RST 1 CANCEL"},
		behaviour{name: "interim responses exceed the limit of headers", serve: func(s *server) {
			for range 3 {
				s.headers(1, false, ":status: 103", "link: "+strings.Repeat("x", 400))
			}
		}, events: "first 1; invalid 1: " + ErrHeaders.Error(), sends: "RST 1 CANCEL"},
	)
}

func goodbyes() []behaviour {
	return []behaviour{
		{name: "RST_STREAM", serve: func(s *server) { must(s.WriteRSTStream(1, xhttp2.ErrCodeInternal)) }, events: "reset 1 INTERNAL_ERROR"},
		{name: "RST_STREAM in the middle", serve: func(s *server) {
			s.headers(1, false, ok)
			must(s.WriteData(1, false, []byte("abc")))
			must(s.WriteRSTStream(1, xhttp2.ErrCode(77)))
			must(s.WriteData(1, true, []byte("late")))
			s.headers(3, true, ok)
		}, events: "first 1; headers 1 200; reset 1 0x4d; first 3; headers 3 200; end 3 200 body 0"},
		{name: "refused", serve: func(s *server) { must(s.WriteRSTStream(1, xhttp2.ErrCodeRefusedStream)) }, events: "refused 1 REFUSED_STREAM"},
		{name: "refused after it was answered", serve: func(s *server) {
			s.headers(1, false, ok)
			must(s.WriteRSTStream(1, xhttp2.ErrCodeRefusedStream))
		}, events: "first 1; headers 1 200; reset 1 REFUSED_STREAM"},
		{name: "GOAWAY for later ones", serve: func(s *server) { must(s.WriteGoAway(1<<31-1, xhttp2.ErrCodeNo, nil)) },
			events: "goaway 2147483647 NO_ERROR"},
		{name: "GOAWAY between the streams", serve: func(s *server) {
			must(s.WriteGoAway(1, xhttp2.ErrCodeNo, []byte("bye")))
			s.headers(1, true, ok)
		}, events: "goaway 1 NO_ERROR; refused 3 NO_ERROR; first 1; headers 1 200; end 1 200 body 0"},
		{name: "GOAWAY below a stream that it answers", serve: func(s *server) {
			s.headers(3, false, ok)
			must(s.WriteGoAway(1, xhttp2.ErrCodeInternal, nil))
			must(s.WriteData(3, true, nil))
		}, events: "first 3; headers 3 200; goaway 1 INTERNAL_ERROR; reset 3 INTERNAL_ERROR"},
		{name: "GOAWAY twice", serve: func(s *server) {
			must(s.WriteGoAway(1<<31-1, xhttp2.ErrCodeNo, nil))
			must(s.WriteGoAway(1, xhttp2.ErrCodeEnhanceYourCalm, nil))
		}, events: "goaway 2147483647 NO_ERROR; goaway 1 ENHANCE_YOUR_CALM; refused 3 ENHANCE_YOUR_CALM"},
		{name: "GOAWAY taken back", serve: func(s *server) {
			must(s.WriteGoAway(1, xhttp2.ErrCodeNo, nil))
			must(s.WriteGoAway(3, xhttp2.ErrCodeNo, nil))
		}, events: "goaway 1 NO_ERROR; refused 3 NO_ERROR; broken 1", broken: true, code: ProtocolError},
	}
}

// small is a client whose limits a short script reaches.
func small(t testing.TB) *Client {
	return client(t, func(c *Config) { c.MaxHeader, c.MaxBody, c.Window, c.ConnWindow = 1<<10, 40_000, 65535, 1<<20 })
}

// asked is a connection with the two requests of a behaviour on their way.
func (b *behaviour) asked(t testing.TB, k *Client) *Conn {
	c := k.Conn(nil)
	method := b.method
	if method == "" {
		method = "GET"
	}
	open(t, c, Request{Tag: 1, Method: method, Target: []byte("/a"), Body: make([]byte, b.body)})
	open(t, c, get(3))
	c.Advance(len(c.Out()))
	return c
}

// stream is what the server writes.
func (b *behaviour) stream() []byte {
	s := newServer()
	if !b.bare {
		must(s.WriteSettings())
	}
	b.serve(s)
	return s.buf.Bytes()
}

func TestServers(t *testing.T) {
	all := behaviours()
	if len(all) < 40 {
		t.Fatalf("%d behaviours", len(all))
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			c, stream := b.asked(t, small(t)), b.stream()
			events, err := feed(c, stream, len(stream))
			b.check(t, c, events, err)
		})
	}
}

func (b *behaviour) check(t *testing.T, c *Conn, events []Event, err error) {
	t.Helper()
	want := b.events
	var broke *ConnError
	if errors.As(err, &broke) != b.broken || broke != nil && broke.Code != b.code {
		t.Fatalf("error %v; want %v %v", err, b.broken, b.code)
	}
	if b.broken && !strings.Contains(want, "broken") {
		want = strings.TrimPrefix(want+"; broken 1; broken 3", "; ")
	}
	if got := tell(events); got != want {
		t.Errorf("told  %s\nwanted %s", got, want)
	}
	got := sent(t, c)
	if b.broken {
		if !strings.HasSuffix(got, "GOAWAY "+b.code.String()) || c.CanOpen() || !c.Draining() || !c.Idle() {
			t.Errorf("sent %.99s; draining %v, in flight %d", got, c.Draining(), c.InFlight())
		}
		if events, again := c.Feed([]byte("x"), nil); !errors.Is(again, err) || len(events) > 0 {
			t.Errorf("more bytes after an error give %v and %v", tell(events), again)
		}
		return
	}
	if want := strings.TrimSuffix("SETTINGS ack; "+b.sends, "; "); got != want {
		t.Errorf("sent  %s\nwanted %s", got, want)
	}
}

// TestServersInPieces cuts what each server writes in many ways: nothing that is told or sent may
// depend on it.
func TestServersInPieces(t *testing.T) {
	k := small(t)
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			whole, stream := b.asked(t, k), b.stream()
			events, err := feed(whole, stream, len(stream))
			cuts := [][]int{{1}, {2}, {9}, {10}, {4096}}
			for i := 1; i < min(len(stream), 80); i++ {
				cuts = append(cuts, []int{i, len(stream)})
			}
			if len(stream) > 50_000 {
				cuts = [][]int{{1003}}
			}
			for _, sizes := range cuts {
				c := b.asked(t, k)
				got, gotErr := feed(c, stream, sizes...)
				if !slices.Equal(got, events) || fmt.Sprint(gotErr) != fmt.Sprint(err) || !bytes.Equal(c.Out(), whole.Out()) {
					t.Fatalf("in pieces of %v: %s %v\nwhole: %s %v", sizes, tell(got), gotErr, tell(events), err)
				}
			}
		})
	}
}
