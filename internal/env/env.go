// Package env brings environments up and takes them down, and keeps the ledger that proves which
// processes are its own. An environment is one revision of the application on this machine, owned by
// Seatrial, and gone afterwards. What starts things is a Provider, one package per driver.
//
// Every resource is journalled before it is made, so that tear-down finds it whenever Seatrial died.
package env

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"seatrial/fault"
	"seatrial/manifest"
)

// DefaultMaxLog is how large one log may grow, in bytes, before its older part is dropped.
const DefaultMaxLog = 16 << 20

// maxReplicas bounds the processes of one service on one machine.
const maxReplicas = 256

// Config says what to bring up.
type Config struct {
	Dir      string // project folder; the ledger is in .seatrial/environments below it
	WorkDir  string // where services are built and run; default Dir
	Name     string // one name, one environment at a time
	Services map[string]manifest.Service
	Provider Provider // the driver

	Keep bool          // it may outlive this process; else it is a leftover once the process is gone
	TTL  time.Duration // with Keep: after this, Prune removes it; 0: never

	Revision string // commit of WorkDir, empty outside git (package worktree tells)
	Dirty    string // digest of what differs from that commit, empty when clean

	Out    io.Writer                        // progress, one line each; default: none
	Getenv func(name string) (string, bool) // for ${env:NAME}; default os.LookupEnv
	MaxLog int64                            // bytes of one log; default DefaultMaxLog
}

// Environment is an environment that this process holds the lock of.
type Environment struct {
	cfg     Config
	mu      sync.Mutex
	state   file
	journal *journal
	lock    *lock
	stop    func() // ends the watch over the logs
	down    bool
}

// Up brings every service up, in the order in which they depend on each other, and returns when all
// are ready and proved to be ours. When it fails, everything that was started has been taken down.
func Up(ctx context.Context, cfg Config) (*Environment, error) {
	names, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	l, err := acquire(cfg.Dir, cfg.Name)
	if err != nil {
		return nil, err
	}
	e, err := create(ctx, cfg, l)
	if err != nil {
		l.release()
		return nil, err
	}
	urls := map[string]string{}
	for _, name := range names {
		if err := e.startService(ctx, name, urls); err != nil {
			if ctx.Err() != nil {
				err = fault.New(fault.CLI003, "bringing up the environment %q was cancelled", cfg.Name).Because(ctx.Err())
			}
			// A cancelled caller still gets a clean machine, with time to ask nicely.
			if left := e.Down(context.WithoutCancel(ctx)); left != nil {
				err = errors.Join(err, left)
			}
			return nil, err
		}
	}
	return e, nil
}

// prepare fills defaults in and gives the order of starting.
func (c *Config) prepare() ([]string, error) {
	if c.Provider == nil {
		return nil, fault.New(fault.CLI002, "no driver was given for the environment %q", c.Name)
	}
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	if len(c.Services) == 0 {
		return nil, fault.New(fault.ENV001, "there is nothing to bring up: no service is declared")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, ledgerFault(c.Name, err)
	}
	c.Dir = dir
	if c.WorkDir == "" {
		c.WorkDir = dir
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Getenv == nil {
		c.Getenv = os.LookupEnv
	}
	if c.MaxLog <= 0 {
		c.MaxLog = DefaultMaxLog
	}
	for name, s := range c.Services {
		if err := checkName(name); err != nil {
			return nil, err
		}
		switch {
		case strings.TrimSpace(s.Run) == "":
			return nil, fault.New(fault.MAN004, "services.%s has no `run` command", name)
		case s.Port < 0 || s.Port > 65535:
			return nil, fault.New(fault.MAN004, "services.%s.port is %d, which is not a port", name, s.Port)
		case s.Replicas < 0 || s.Replicas > maxReplicas:
			return nil, fault.New(fault.MAN004, "services.%s.replicas is %d; it must be between 1 and %d", name, s.Replicas, maxReplicas)
		}
	}
	return order(c.Services)
}

// create writes the ledger of a new environment; a leftover of the same name is taken down first.
func create(ctx context.Context, cfg Config, l *lock) (*Environment, error) {
	if err := clearWay(ctx, &cfg); err != nil {
		return nil, err
	}
	token := make([]byte, 32)
	if _, err := rand.Read(token); err != nil {
		return nil, ledgerFault(cfg.Name, err)
	}
	me, _ := Identify(os.Getpid())
	me.PID = os.Getpid()
	e := &Environment{cfg: cfg, lock: l, stop: func() {}}
	e.state = file{Token: hex.EncodeToString(token), Info: Info{
		Schema: 1, ID: newID(time.Now()), Name: cfg.Name, Driver: cfg.Provider.Name(),
		Created: time.Now().UTC().Truncate(time.Millisecond), Owner: me,
		Keep: false, TTL: cfg.TTL, Revision: cfg.Revision, Dirty: cfg.Dirty, Services: []Service{},
	}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Services)) {
		e.state.Notes = append(e.state.Notes, cfg.Provider.Notes(name, cfg.Services[name].Resources)...)
	}
	if err := e.openLedger(); err != nil {
		e.journal.close()
		_ = os.RemoveAll(envDir(cfg.Dir, cfg.Name)) // nothing was started; best effort on a sick disk
		return nil, ledgerFault(cfg.Name, err)
	}
	e.stop = watchLogs(liveLogDir(cfg.Dir, cfg.Name), cfg.MaxLog)
	return e, nil
}

func newID(now time.Time) string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return fmt.Sprintf("env_%s_%x", now.UTC().Format("20060102T150405Z"), b)
}

// clearWay makes room for a new environment of the same name.
func clearWay(ctx context.Context, cfg *Config) error {
	if _, err := os.Lstat(envDir(cfg.Dir, cfg.Name)); err != nil {
		return nil
	}
	s, err := readFile(cfg.Dir, cfg.Name)
	if err == nil && s.state(time.Now()) == Kept {
		return fault.New(fault.ENV007, "the environment %q is up already since %s", cfg.Name,
			s.Created.Format(time.RFC3339)).WithNext("Use it, or run `seatrial env down %s` first.", cfg.Name)
	}
	_, _ = fmt.Fprintf(cfg.Out, "%s: taking down what an earlier run left behind\n", cfg.Name)
	return removeAll(ctx, cfg.Dir, cfg.Name, cfg.Provider)
}

func (e *Environment) openLedger() error {
	dir, name := e.cfg.Dir, e.cfg.Name
	if err := os.MkdirAll(liveLogDir(dir, name), 0o700); err != nil {
		return err
	}
	// The folder holds tokens and logs: never part of a commit, nor of a dirty digest.
	if err := os.WriteFile(filepath.Join(ledgerDir(dir), ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return err
	}
	if err := e.state.write(dir); err != nil {
		return err
	}
	if err := syncDir(ledgerDir(dir)); err != nil {
		return err
	}
	j, err := openJournal(journalAt(dir, name))
	if err != nil {
		return err
	}
	e.journal = j
	return j.append(entry{Op: opOpen, Token: e.state.Token})
}

// track journals an intent, makes the resource, and journals that it exists.
func (e *Environment) track(r Resource, make func() (Resource, error)) error {
	if err := e.journal.append(entry{Op: opIntent, Resource: &r}); err != nil {
		return ledgerFault(e.cfg.Name, err)
	}
	made, err := make()
	if err != nil {
		return err
	}
	if err := e.journal.append(entry{Op: opDone, Resource: &made}); err != nil {
		return ledgerFault(e.cfg.Name, err)
	}
	return nil
}

// startService builds a service and starts its replicas.
func (e *Environment) startService(ctx context.Context, name string, urls map[string]string) error {
	svc := e.cfg.Services[name]
	if svc.Build != "" {
		if err := e.build(ctx, name, svc, urls); err != nil {
			return err
		}
	}
	for k := range max(1, svc.Replicas) {
		got, err := e.startReplica(ctx, name, k, svc, urls)
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.state.Services = append(e.state.Services, got)
		err = e.state.write(e.cfg.Dir)
		e.mu.Unlock()
		if err != nil {
			return ledgerFault(e.cfg.Name, err)
		}
		e.say("%s: ready at %s after %.1f s", got.Resource.ID, got.URL, got.StartupMS/1000)
	}
	for _, s := range e.state.Services {
		if s.Name == name && s.Replica == 0 {
			urls[name] = s.URL
		}
	}
	return nil
}

func (e *Environment) build(ctx context.Context, name string, svc manifest.Service, urls map[string]string) error {
	e.say("%s: building", name)
	u, err := e.unit(name, 0, 0, svc, svc.Build, urls)
	if err != nil {
		return err
	}
	u.ID, u.Log = name+"/build", filepath.Join(liveLogDir(e.cfg.Dir, e.cfg.Name), name+".build.log")
	r := Resource{Kind: e.cfg.Provider.Name(), ID: u.ID, Service: name}
	if err := e.journal.append(entry{Op: opIntent, Resource: &r}); err != nil {
		return ledgerFault(e.cfg.Name, err)
	}
	if err := e.cfg.Provider.Build(ctx, u); err != nil {
		return fault.New(fault.ENV002, "the service %q could not be built: %s", name, err).
			WithDetail(tail(u.Log)).Because(err)
	}
	if err := e.journal.append(entry{Op: opRemoved, Resource: &r}); err != nil {
		return ledgerFault(e.cfg.Name, err)
	}
	return nil
}

// unit makes the substitutions for one build (port 0) or one replica.
func (e *Environment) unit(name string, replica, port int, svc manifest.Service, command string, urls map[string]string) (Unit, error) {
	sc := scope{service: name, port: port, urls: urls, getenv: e.cfg.Getenv, used: map[string]string{}}
	key := "run"
	if port == 0 {
		key = "build"
	}
	line, err := sc.shell(key, command)
	if err != nil {
		return Unit{}, err
	}
	vars := environMap(os.Environ())
	for _, k := range slices.Sorted(maps.Keys(svc.Env)) {
		if port == 0 && strings.Contains(svc.Env[k], "${PORT}") {
			continue // a variable for running; there is no port while building
		}
		if vars[k], err = sc.text("env."+k, svc.Env[k]); err != nil {
			return Unit{}, err
		}
	}
	for k, v := range sc.used {
		if _, declared := svc.Env[k]; !declared {
			vars[k] = v
		}
	}
	id := fmt.Sprintf("%s/%d", name, replica)
	if port != 0 {
		vars["PORT"] = fmt.Sprint(port)
	} else {
		id = name + "/build"
	}
	vars[MarkerEnv], vars[MarkerUnit] = e.state.Token, id
	u := Unit{ID: id, Service: name, Replica: replica, Token: e.state.Token, Dir: e.cfg.WorkDir,
		Command: line, Port: port, Resources: svc.Resources,
		Log: filepath.Join(liveLogDir(e.cfg.Dir, e.cfg.Name), fmt.Sprintf("%s.%d.log", name, replica))}
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		u.Env = append(u.Env, k+"="+vars[k])
	}
	return u, nil
}

func environMap(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			m[k] = v
		}
	}
	return m
}

func (e *Environment) say(format string, args ...any) {
	_, _ = fmt.Fprintf(e.cfg.Out, format+"\n", args...)
}

// Open takes the lock of an environment that is up, to send traffic at it or to take it down.
func Open(dir, name string, p Provider) (*Environment, error) {
	cfg := Config{Dir: dir, Name: name, Provider: p, Services: map[string]manifest.Service{"-": {Run: "-"}}}
	if _, err := cfg.prepare(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(envDir(cfg.Dir, name)); err != nil {
		return nil, noSuch(name)
	}
	l, err := acquire(cfg.Dir, name)
	if err != nil {
		return nil, err
	}
	s, err := readFile(cfg.Dir, name)
	var j *journal
	if err == nil {
		j, err = openJournal(journalAt(cfg.Dir, name))
	}
	if err != nil {
		l.release()
		return nil, fault.New(fault.ENV005, "the ledger of the environment %q cannot be read", name).Because(err).
			WithNext("Run `seatrial env down %s`; it removes what can be found.", name)
	}
	e := &Environment{cfg: cfg, state: s, lock: l, journal: j}
	e.stop = watchLogs(liveLogDir(cfg.Dir, name), cfg.MaxLog)
	return e, nil
}

// Release gives the lock back and leaves the environment up, as Config.Keep asked. An environment
// that was not to be kept is a leftover from then on.
func (e *Environment) Release() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return nil
	}
	e.down = true
	var err error
	if e.cfg.Keep && !e.state.Keep {
		e.state.Keep = true
		err = e.state.write(e.cfg.Dir)
	}
	e.stop()
	e.journal.close()
	e.lock.release()
	if err != nil {
		return ledgerFault(e.cfg.Name, err)
	}
	return nil
}

// Info gives what the ledger holds of the environment.
func (e *Environment) Info() Info {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.state.Info
	i.Services, i.Notes = slices.Clone(i.Services), slices.Clone(i.Notes)
	i.State, i.Holder = InUse, os.Getpid()
	if e.down && i.Keep { // released
		i.State, i.Holder = Kept, 0
	}
	return i
}

// URLs gives the URL of each service's first replica.
func (e *Environment) URLs() map[string]string {
	out := map[string]string{}
	for _, s := range e.Info().Services {
		if s.Replica == 0 {
			out[s.Name] = s.URL
		}
	}
	return out
}

// StartupMS gives, for each service, the longest of its replicas' times from start to ready.
func (e *Environment) StartupMS() map[string]float64 {
	out := map[string]float64{}
	for _, s := range e.Info().Services {
		out[s.Name] = max(out[s.Name], s.StartupMS)
	}
	return out
}
