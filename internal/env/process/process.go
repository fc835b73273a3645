// Package process brings services up as child processes: each in a session of its own, its output in
// a file, nothing needed beyond the toolchain of the application.
//
// A service is deliberately not tied to the life of Seatrial: after kill -9 of Seatrial it runs on,
// stands in the ledger, and is removed by the next command. What belongs to a unit is found by three
// marks: its session, its descent from the process that was started, and the environment variables
// that every process of an environment inherits. A number alone is never trusted; the start time must
// match too.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"seatrial/internal/env"
	"seatrial/manifest"
)

// Name is the driver's name.
const Name = "process"

// How long a unit may take to end after it was asked to (SIGTERM), and after it was told (SIGKILL).
const (
	DefaultGrace = 5 * time.Second
	forceWait    = 5 * time.Second
	pollEvery    = 20 * time.Millisecond
)

// Provider is the process driver. The zero value is ready for use.
type Provider struct {
	Grace time.Duration // between SIGTERM and SIGKILL; default DefaultGrace
}

var _ env.Provider = Provider{}

// Name is "process".
func (Provider) Name() string { return Name }

// Alive tells whether the process that was started for r still runs.
func (Provider) Alive(r env.Resource) bool { return r.Process.Running() }

// Build runs the build command to its end.
func (p Provider) Build(ctx context.Context, u env.Unit) error {
	inst, err := p.Start(ctx, u)
	if err != nil {
		return err
	}
	select {
	case <-inst.Exited:
	case <-ctx.Done():
		// ctx has ended, so that this ends the build at once.
		return errors.Join(ctx.Err(), p.Remove(ctx, u.Token, inst.Resource))
	}
	if s := inst.Status(); s != "exit status 0" {
		return errors.New(s)
	}
	return nil
}

// Start starts u's command line with the shell, in a new session.
func (p Provider) Start(ctx context.Context, u env.Unit) (env.Instance, error) {
	if err := ctx.Err(); err != nil {
		return env.Instance{}, err
	}
	line, err := command(u)
	if err != nil {
		return env.Instance{}, err
	}
	log, err := os.OpenFile(u.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return env.Instance{}, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = u.Dir, u.Env
	cmd.Stdout, cmd.Stderr = log, log // a file, not a pipe: it must outlive this process
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return env.Instance{}, err
	}
	// The process cannot be reaped before Wait below, so that its identity is read in time.
	id, ok := env.Identify(cmd.Process.Pid)
	if !ok {
		id = env.Identity{PID: cmd.Process.Pid} // it ended already
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	return env.Instance{
		Resource: env.Resource{Kind: Name, ID: u.ID, Service: u.Service, Replica: u.Replica, Process: id, Port: u.Port},
		Exited:   exited,
		Status:   func() string { return cmd.ProcessState.String() },
	}, nil
}

// command puts the limits that need no privileges before the command line.
func command(u env.Unit) (string, error) {
	if u.Resources.Memory == "" || u.Port == 0 { // a build is not the service
		return u.Command, nil
	}
	n, err := parseBytes(u.Resources.Memory)
	if err != nil {
		return "", fmt.Errorf("resources.memory: %w", err)
	}
	// The data segment, not the address space: runtimes reserve far more addresses than they use.
	return fmt.Sprintf("ulimit -d %d || exit 125\n%s", (n+1023)/1024, u.Command), nil
}

// Notes says what the driver cannot enforce.
func (Provider) Notes(service string, r manifest.Resources) []string {
	var out []string
	if r.CPU > 0 {
		out = append(out, fmt.Sprintf("resources.cpu of the service %s is not enforced: the process driver would need a control group, and so privileges", service))
	}
	if r.Memory != "" {
		out = append(out, fmt.Sprintf("resources.memory of the service %s limits the private data of each of its processes, not their sum", service))
	}
	return out
}

var units = []struct {
	suffix string
	factor float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"B", 1}, {"", 1},
}

// parseBytes reads "512MiB", "1.5GB" or a bare number of bytes.
func parseBytes(s string) (uint64, error) {
	s = strings.TrimSpace(s)
	for _, u := range units {
		num, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(v*u.factor >= 1) || v*u.factor > 1<<62 {
			break
		}
		return uint64(v * u.factor), nil
	}
	return 0, fmt.Errorf("%q is not an amount of memory", s)
}

// proofAttempts is how often a proof is made before it is denied: the tables of the kernel cannot be
// read at one instant, and a server may be replacing its workers just then.
const proofAttempts = 3

// Prove tells whether r's processes, and no others, listen where addr is answered.
func (Provider) Prove(token string, r env.Resource, addr netip.AddrPort) error {
	var err error
	for range proofAttempts {
		if err = prove(token, r, addr); err == nil {
			return nil
		}
	}
	return err
}

func prove(token string, r env.Resource, addr netip.AddrPort) error {
	if !addr.Addr().IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", addr)
	}
	if !r.Process.Running() {
		return fmt.Errorf("process %d, which was started for it, has ended", r.Process.PID)
	}
	sockets, err := listeners(addr)
	if err != nil {
		return err
	}
	if len(sockets) == 0 {
		return fmt.Errorf("nothing listens on %s", addr)
	}
	procs, err := scan()
	if err != nil {
		return err
	}
	ours := family(procs, token, r)
	if !ours.marked() {
		// A ledger that was written by someone else could name any process.
		return fmt.Errorf("process %d does not carry this environment's token", r.Process.PID)
	}
	return ours.ownAll(procs, sockets, addr)
}

// Remove ends r and all that belongs to it: SIGTERM, up to Grace, then SIGKILL.
func (p Provider) Remove(ctx context.Context, token string, r env.Resource) error {
	if r.Kind != Name {
		return fmt.Errorf("a resource of kind %q is not the process driver's", r.Kind)
	}
	return p.end(ctx, func(procs map[int]stat) []stat { return family(procs, token, r).list() })
}

// Sweep ends every process that carries the token.
func (p Provider) Sweep(ctx context.Context, token string) error {
	if len(token) < 32 {
		return errors.New("the environment's token is missing")
	}
	return p.end(ctx, func(procs map[int]stat) []stat { return carriers(procs, token) })
}

// end signals what find gives until it gives nothing. It looks anew each round, because a process
// may fork while it is being ended.
func (p Provider) end(ctx context.Context, find func(map[int]stat) []stat) error {
	grace := p.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	asked := map[env.Identity]bool{}
	forceAt, giveUp := time.Now().Add(grace), time.Now().Add(grace+forceWait)
	for {
		procs, err := scan()
		if err != nil {
			return err
		}
		left := find(procs)
		if len(left) == 0 {
			return nil
		}
		force := ctx.Err() != nil || time.Now().After(forceAt)
		if time.Now().After(giveUp) {
			return fmt.Errorf("still running: %s", describe(left))
		}
		for _, s := range left {
			if force || !asked[s.identity] {
				asked[s.identity] = true
				if err := signal(s.identity, force); err != nil {
					return fmt.Errorf("process %d cannot be ended: %w", s.identity.PID, err)
				}
			}
		}
		select {
		case <-ctx.Done():
			time.Sleep(pollEvery / 4) // the kernel needs a moment even for SIGKILL
		case <-time.After(pollEvery):
		}
		if ctx.Err() != nil && giveUp.After(time.Now().Add(forceWait)) {
			giveUp = time.Now().Add(forceWait)
		}
	}
}

func describe(left []stat) string {
	var b bytes.Buffer
	for i, s := range left {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "process %d", s.identity.PID)
	}
	return b.String()
}

// stat is one process of this machine.
type stat struct {
	identity    env.Identity
	parent, sid int
	token, unit string // its markers; empty when it has none or they cannot be read
}

// clan is the set of processes that belong to one unit.
type clan struct {
	token   string
	members map[int]stat
}

func (c clan) list() []stat {
	out := make([]stat, 0, len(c.members))
	for _, s := range c.members {
		out = append(out, s)
	}
	return out
}

// marked tells whether a member carries the token. One is enough: a program that rewrites its own
// title may have lost its markers.
func (c clan) marked() bool {
	for _, s := range c.members {
		if c.token != "" && s.token == c.token {
			return true
		}
	}
	return false
}

// family finds the processes of r. Session and descent count only while the process that was started
// runs as it was started: afterwards its number may mean another session.
func family(procs map[int]stat, token string, r env.Resource) clan {
	root, ok := procs[r.Process.PID]
	rooted := ok && r.Process.PID > 0 && r.Process.Boot != "" && root.identity == r.Process
	c := clan{token: token, members: map[int]stat{}}
	for pid, s := range procs {
		marked := token != "" && s.token == token && s.unit == r.ID
		if marked || rooted && (s.sid == r.Process.PID || descends(procs, pid, r.Process.PID)) {
			c.members[pid] = s
		}
	}
	delete(c.members, os.Getpid()) // never ourselves, whatever the ledger says
	return c
}

func descends(procs map[int]stat, pid, root int) bool {
	for range 256 { // a snapshot that raced may hold a circle
		if pid == root {
			return true
		}
		s, ok := procs[pid]
		if !ok || s.parent <= 1 {
			return false
		}
		pid = s.parent
	}
	return false
}

// carriers finds the processes that carry a token.
func carriers(procs map[int]stat, token string) []stat {
	var out []stat
	for pid, s := range procs {
		if s.token == token && pid != os.Getpid() {
			out = append(out, s)
		}
	}
	return out
}
