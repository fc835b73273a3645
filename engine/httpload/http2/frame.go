package http2

import (
	"encoding/binary"
	"strconv"
)

// Frame types, flags and settings (RFC 9113, 6 and 11).
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	framePriority     = 0x2
	frameReset        = 0x3
	frameSettings     = 0x4
	framePushPromise  = 0x5
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingTable   = 0x1
	settingPush    = 0x2
	settingStreams = 0x3
	settingWindow  = 0x4
	settingFrame   = 0x5
	settingList    = 0x6
)

const (
	preface       = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	headerLen     = 9
	maxFrame      = 16384 // what either side may send until told otherwise; we never tell, and never use more
	defaultWindow = 65535
	maxWindow     = 1<<31 - 1
	maxStream     = 1<<31 - 1
)

// Code is the error code of RST_STREAM and GOAWAY (RFC 9113, 7).
type Code uint32

// The codes.
const (
	NoError Code = iota
	ProtocolError
	InternalError
	FlowControlError
	SettingsTimeout
	StreamClosed
	FrameSizeError
	RefusedStream
	CancelStream
	CompressionError
	ConnectError
	EnhanceYourCalm
	InadequateSecurity
	HTTP11Required
)

// String gives the name in the RFC, or the number of a code that it does not know.
func (c Code) String() string {
	names := [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
		"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
		"ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}
	if int64(c) < int64(len(names)) {
		return names[c]
	}
	return "0x" + strconv.FormatUint(uint64(c), 16)
}

// ConnError is why a connection can carry nothing more. Reason says what the peer did.
type ConnError struct {
	Code   Code
	Reason string
}

// Error implements error.
func (e *ConnError) Error() string { return "http2: " + e.Reason + " (" + e.Code.String() + ")" }

// header is the head of one frame.
type header struct {
	length uint32
	kind   uint8
	flags  uint8
	stream uint32
}

func parseHeader(b []byte) header {
	return header{
		length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		kind:   b[3],
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) & maxStream,
	}
}

func (h header) has(flag uint8) bool { return h.flags&flag != 0 }

func appendHeader(b []byte, length int, kind, flags uint8, stream uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), kind, flags,
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

// appendWord adds a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
func appendWord(b []byte, kind uint8, stream, word uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHeader(b, 4, kind, 0, stream), word)
}

func appendSetting(b []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, id), value)
}
