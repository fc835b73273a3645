package engine

import (
	"testing"
	"time"
)

const snmp = `Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm ActiveOpens RetransSegs InErrs
Tcp: 1 20 345 6
`

const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 9 9 0 1 0 0 0 0 9 9 0 2 0 0 0 0
  eth0:9 9 0 30 0 0 0 0 9 9 0 400 0 0 0 0
`

func TestProcFiles(t *testing.T) {
	if n := retransmits(snmp); n != 345 {
		t.Errorf("retransmits %d", n)
	}
	if n := interfaceDrops(dev); n != 433 {
		t.Errorf("drops %d", n)
	}
	if d := stolen("cpu  1 2 3 4 5 6 7 80 0 0\ncpu0 1"); d != 800*time.Millisecond {
		t.Errorf("stolen %s", d)
	}
	for _, s := range []string{"", "x", "Tcp: RetransSegs\n", "Tcp: a RetransSegs\nTcp: 1\n", "Tcp: RetransSegs\nTcp: x\n", "eth0: 1 2 3", "eth0: 1 2 3 x 5 6 7 8 9 10 11 12",
		"cpu 1 2", "cpu a a a a a a a x"} {
		if retransmits(s) != -1 || interfaceDrops(s) != -1 || stolen(s) != -1 {
			t.Errorf("%q is read as something", s)
		}
	}
	if slurp("/no/such/file") != "" {
		t.Error("a file that is not there has content")
	}
	m := ReadMachine()
	if m.Kernel == "" || m.Load1 < 0 || localPorts() <= 0 || openFDs() <= 0 || suspended() < 0 {
		t.Errorf("%+v, %d ports, %d descriptors", m, localPorts(), openFDs())
	}
}
