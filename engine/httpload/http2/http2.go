// Package http2 is the client's side of HTTP/2 (RFC 9113) on one connection, as a pure state machine:
// it takes the bytes that were read and gives the bytes to write. It knows no sockets, no goroutines
// and no clock, so that every engine and the fuzzer drive the same code.
//
// The caller writes Out and tells Advance how much of it was taken; reads, gives Feed what came, acts on
// the events, opens what is due while CanOpen, and writes again; calls Cancel at a request's time-out,
// and Close when the transport has ended.
//
// A Conn is used by one goroutine at a time. In steady state it does not allocate.
package http2

import (
	"errors"
	"fmt"
	"slices"
)

const (
	defaultStreams    = 100
	defaultMaxHeader  = 64 << 10
	defaultMaxBody    = 64 << 20
	defaultOurWindow  = 4 << 20
	defaultConnWindow = 16 << 20

	earlyStreams = 100      // opened before the peer has said how many it takes (RFC 9113, 6.5.2)
	maxInterim   = 16       // 1xx responses before the final one
	maxWaste     = 10_000   // frames in excess that bring no response forward
	wastePaid    = 16       // how many of them a useful frame pays for
	maxQueue     = 64 << 10 // output beyond which no body is added
	maxBacklog   = 1 << 20  // output beyond which no request is added; beyond twice that no reply
	bomb         = 16       // times the limit of headers that one block may expand to
	keepBuffer   = 4 << 10  // a larger buffer is given back when it is empty
	keepOut      = 2 * maxQueue
)

// Why a request is not opened.
var (
	ErrBusy     = errors.New("http2: no stream may be opened now")
	ErrDraining = errors.New("http2: the connection takes no more requests")
	ErrRequest  = errors.New("http2: the request cannot be sent as it is")
)

// Why a response is Invalid.
var (
	ErrField      = errors.New("http2: malformed header field")
	ErrPseudo     = errors.New("http2: malformed pseudo-header")
	ErrConnection = errors.New("http2: header field of a connection")
	ErrLength     = errors.New("http2: the body is not as long as content-length says")
	ErrBodyless   = errors.New("http2: a body where none may be")
	ErrOrder      = errors.New("http2: frame out of order")
	ErrHeaders    = errors.New("http2: headers exceed the limit")
	ErrBody       = errors.New("http2: body exceeds the limit")
	ErrInterim    = errors.New("http2: too many interim responses")
	ErrWindow     = errors.New("http2: flow control violated")
	ErrFrameSize  = errors.New("http2: frame of a wrong size")
)

// Field is one header field.
type Field struct {
	Name  string // in any case; sent in lower case
	Value []byte
}

// Config is what the connections of one run have in common.
type Config struct {
	Scheme    string  // http or https
	Authority string  // host and perhaps port
	Fields    []Field // of every request

	Streams    int    // most streams at once; 0 means 100. The peer's own limit counts too.
	MaxHeader  int    // bytes of all header lists of one response, sized as in RFC 9113, 6.5.2; 0 means 64 KiB
	MaxBody    int64  // bytes of a response's body; 0 means 64 MiB
	Window     uint32 // bytes that the peer may send ahead on a stream, 65,535 at least; 0 means 4 MiB
	ConnWindow uint32 // the same for the connection; 0 means 16 MiB
}

// Client holds what is built once for all connections of a run. It does not change.
type Client struct {
	cfg    Config
	start  []byte // preface, settings, window
	before []byte // fields between :method and :path
	after  []byte // fields after :path
}

// NewClient checks the configuration and builds what each connection and request begins with. All
// problems are returned at once.
func NewClient(c Config) (*Client, error) {
	var errs []error
	if c.Scheme != "http" && c.Scheme != "https" {
		errs = append(errs, fmt.Errorf("http2: the scheme %q is neither http nor https", c.Scheme))
	}
	if c.Authority == "" || !visible([]byte(c.Authority)) {
		errs = append(errs, fmt.Errorf("http2: %q is no authority", c.Authority))
	}
	c.Fields = slices.Clone(c.Fields)
	if c.Streams <= 0 {
		c.Streams = defaultStreams
	}
	if c.MaxHeader <= 0 {
		c.MaxHeader = defaultMaxHeader
	}
	if c.MaxBody <= 0 {
		c.MaxBody = defaultMaxBody
	}
	c.Window = window(c.Window, defaultOurWindow)
	c.ConnWindow = window(c.ConnWindow, defaultConnWindow)
	k := &Client{cfg: c, start: greeting(&c)}
	k.before = appendField(k.before, ":scheme", []byte(c.Scheme))
	k.before = appendField(k.before, ":authority", []byte(c.Authority))
	for _, f := range c.Fields {
		if !sendable(&f) {
			errs = append(errs, fmt.Errorf("http2: the field %q cannot be sent", f.Name)) // its value may be a secret
			continue
		}
		k.after = appendField(k.after, lower(f.Name), f.Value)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return k, nil
}

// window puts a receive window into its bounds. A smaller one than the protocol's default cannot be
// enforced before the peer has read our settings.
func window(w, fallback uint32) uint32 {
	if w == 0 {
		w = fallback
	}
	return min(max(w, defaultWindow), maxWindow)
}

// greeting is what the client sends first (RFC 9113, 3.4).
func greeting(c *Config) []byte {
	var s []byte
	s = appendSetting(s, settingPush, 0)
	s = appendSetting(s, settingWindow, c.Window)
	s = appendSetting(s, settingList, uint32(min(int64(c.MaxHeader), maxWindow)))
	b := append(appendHeader([]byte(preface), len(s), frameSettings, 0, 0), s...)
	if c.ConnWindow > defaultWindow {
		b = appendWord(b, frameWindowUpdate, 0, c.ConnWindow-defaultWindow)
	}
	return b
}

// Observer sees what the final response holds, for checks on it. The bytes are valid during the call.
type Observer interface {
	Field(tag uint32, name, value []byte)
	Data(tag uint32, b []byte)
}

// Kind is what happened on a stream or the connection.
type Kind uint8

// The kinds. Each request that was opened and not cancelled ends with exactly one of End, Reset,
// Refused, Invalid and Broken.
const (
	FirstByte Kind = iota + 1 // the response began; an interim one counts
	Headers                   // of the final response: Status
	End                       // complete, valid response
	Reset                     // the peer gave the stream up: Code
	Refused                   // the peer certainly never processed the request: Code; RefusedStream when it refused this very one
	Invalid                   // the response is malformed or exceeds a limit, and was given up: Err
	Broken                    // the connection ended before the response did
	GoAway                    // the peer takes no more requests: Last, Code
)

// Event is one thing that happened. Those that end a request carry all that is known of it.
type Event struct {
	Kind     Kind
	Status   uint16 // of the final response; 0 before its headers
	Stream   uint32
	Tag      uint32 // of the request
	Last     uint32 // of GoAway: no stream above it was or will be processed
	Code     Code
	Body     int64 // bytes of the response's body
	BytesIn  int64 // bytes of its frames; 0 when nothing of a response arrived
	BytesOut int64 // bytes of the request's frames
	Err      error // of Invalid: which rule was broken
}

// Conn is one connection.
type Conn struct {
	cfg      *Config
	client   *Client
	observer Observer
	streams  streams
	ended    memory
	next     uint32 // number of the next stream
	draining bool
	last     uint32 // of the lowest GOAWAY
	err      *ConnError
	events   []Event // during Feed

	frameReader
	dec      decoder
	greeted  bool     // the peer's settings arrived
	credit   int64    // what the peer may still send
	taken    int64    // what it sent and was not given back
	owed     []uint32 // streams whose credit is low
	waste    int
	fragment []byte // of a header block in several frames
	pending  uint32 // stream of that block, 0 when there is none
	pendEnd  bool   // it ends the response

	peer    peer
	window  int64 // what we may still send
	shrink  bool  // tell the peer's decoder that no table is used
	out     []byte
	at      int    // of out: written
	written uint64 // bytes in all
	sending []int32
	turn    int // of sending
	scratch []byte
}

// peer is what the peer's settings say.
type peer struct {
	streams uint32
	window  uint32
	table   uint32
}

// Conn makes a connection whose first output is what HTTP/2 begins with. The observer may be nil.
func (k *Client) Conn(o Observer) *Conn {
	c := &Conn{cfg: &k.cfg, client: k, observer: o, streams: newStreams(k.cfg.Streams), next: 1, last: maxStream,
		dec: newDecoder(), credit: int64(k.cfg.ConnWindow), window: defaultWindow,
		peer: peer{streams: earlyStreams, window: defaultWindow, table: tableSize}}
	c.out = append(c.out, k.start...)
	return c
}

// InFlight is the number of requests that have not ended.
func (c *Conn) InFlight() int { return c.streams.open }

// Idle tells whether no request is on its way.
func (c *Conn) Idle() bool { return c.streams.open == 0 }

// Greeted tells whether the peer's settings arrived. Until then it is not known how many streams it
// takes, and Open assumes 100 as the RFC recommends: a peer that takes fewer refuses the rest.
func (c *Conn) Greeted() bool { return c.greeted }

// CanOpen tells whether Open would find a stream now.
func (c *Conn) CanOpen() bool { return c.admit() == nil }

// Draining tells that the connection will never take a request again: the peer or the caller said
// goodbye, the numbers of streams are used up, or the connection is in error.
func (c *Conn) Draining() bool { return c.err != nil || c.draining || c.next > maxStream }

func (c *Conn) admit() error {
	switch {
	case c.Draining():
		return ErrDraining
	case c.streams.open >= c.cfg.Streams, int64(c.streams.open) >= int64(c.peer.streams), c.backlog() > maxBacklog:
		return ErrBusy
	}
	return nil
}
