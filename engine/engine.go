// Package engine holds what every load driver shares: the admitted target, the epoch, the limits and
// the generator's health. Drivers live below it, one package per protocol.
package engine

import "time"

// Limits bound one run. A zero time-out means the request's Timeout.
type Limits struct {
	Timeout        time.Duration // per request, from its due time
	Connect        time.Duration
	TLS            time.Duration
	FirstByte      time.Duration
	MaxConnections int   // connections open at once, over all addresses
	MaxHeader      int   // bytes of status line and headers of one response; default 64 KiB
	MaxBody        int64 // bytes of one response body that are read before it is classified InvalidResponse; default 64 MiB
}

// Health is what the generator observed of itself (LD-11). A figure that could not be read is
// negative and is named in Unmeasured; it is never taken for good.
type Health struct {
	CPU            float64       `json:"cpu_share"`      // mean of the process's CPU over the cores that it may use, 0..1
	CPUPeak        float64       `json:"cpu_share_peak"` // highest one-second value
	Cores          int           `json:"cores"`
	LoopLagMax     time.Duration `json:"loop_lag_max_ns"` // longest delay of a timer
	LoopLagP99     time.Duration `json:"loop_lag_p99_ns"`
	GCPauseTotal   time.Duration `json:"gc_pause_total_ns"`
	ConnPeak       int           `json:"connections_peak"`
	ConnLimit      int           `json:"connections_limit"`
	ConnLimitHit   uint64        `json:"connections_limit_hit"` // arrivals that waited because the limit was reached
	ConnOpened     uint64        `json:"connections_opened"`
	FDLimit        int           `json:"fd_limit"`
	FDPeak         int           `json:"fd_peak"`
	PortsExhausted uint64        `json:"ports_exhausted"` // connects that failed with EADDRNOTAVAIL
	FDExhausted    uint64        `json:"fd_exhausted"`    // sockets that failed with EMFILE or ENFILE
	BytesIn        uint64        `json:"bytes_in"`
	BytesOut       uint64        `json:"bytes_out"`
	Retransmits    int64         `json:"tcp_retransmits"` // of the host during the run
	IfaceDrops     int64         `json:"interface_drops"` // of the interfaces during the run
	Unasked        uint64        `json:"unasked"`         // connections given up because bytes came that belong to no request
	LostSamples    uint64        `json:"lost_samples"`
	RateLimited    uint64        `json:"max_rate_unsent"` // arrivals not sent because of the target's max_rate
	Suspended      time.Duration `json:"suspended_ns"`    // time in which the machine or the process stood still
	Unmeasured     []string      `json:"unmeasured,omitempty"`
}
