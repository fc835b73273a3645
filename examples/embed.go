// Package examples carries the example application's sources and traffic inside the binary, so that
// the demo works without a clone.
package examples

import "embed"

// Chandlery is the folder chandlery: sources, manifests and bundled traffic.
//
//go:embed chandlery/*.go chandlery/*.yaml chandlery/traffic chandlery/storefront/seatrial.yaml
var Chandlery embed.FS
