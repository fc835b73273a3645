package httpload

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pair is a certificate for 127.0.0.1 with its key, in files.
type pair struct {
	cert, key, both string // paths
	roots           *x509.CertPool
}

func newPair(t testing.TB) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := pair{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), both: filepath.Join(dir, "both.pem"), roots: x509.NewCertPool()}
	cert, private := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	p.roots.AppendCertsFromPEM(cert)
	for path, b := range map[string][]byte{p.cert: cert, p.key: private, p.both: append(cert, private...)} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// freePort gives a port that was free a moment ago.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// installed finds a server of the system; its package is one that the tests' set-up installs.
func installed(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin/", "/usr/local/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is needed: scripts/setup-test.sh installs it", name)
	return ""
}

// daemon runs a server in the foreground until the test ends, and waits until it listens.
func daemon(t testing.TB, listens []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(installed(t, name), args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group: nginx has workers
		_ = cmd.Wait()
	})
	for _, addr := range listens {
		network := "tcp"
		if strings.HasPrefix(addr, "/") {
			network = "unix"
		}
		var err error
		for range 100 {
			var c net.Conn
			if c, err = net.Dial(network, addr); err == nil {
				_ = c.Close()
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			t.Fatalf("%s does not listen on %s: %v\n%s", name, addr, err, said.String())
		}
	}
}

// nginx is a real one, with one line in its log for each request.
type nginx struct{ addr, plain, unix, log string }

func startNginx(t testing.TB, p pair, more string) nginx {
	t.Helper()
	dir := t.TempDir()
	n := nginx{addr: "127.0.0.1:" + freePort(t), plain: "127.0.0.1:" + freePort(t), unix: filepath.Join(dir, "s"), log: filepath.Join(dir, "access.log")}
	conf := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit; user root;
events { worker_connections 4096; }
http {
  log_format shakes '$connection $connection_requests $ssl_session_reused $ssl_protocol $server_protocol $remote_addr';
  access_log %[5]s shakes; keepalive_requests 1000000;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s2;
  ssl_certificate %[6]s; ssl_certificate_key %[7]s; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:a:4m;
  %[8]s
  server { listen %[2]s ssl http2; location / { return 200 "fine"; } }
  server { listen %[3]s; listen unix:%[4]s; location / { return 200 "fine"; } }
}
`, dir, n.addr, n.plain, n.unix, n.log, p.cert, p.key, more)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon(t, []string{n.addr, n.plain, n.unix}, "nginx", "-c", file)
	return n
}

// requests gives the lines of the log since it was last emptied; n is how many are waited for.
func (n nginx) requests(t testing.TB, count int) [][]string {
	t.Helper()
	var out [][]string
	for range 100 {
		b, err := os.ReadFile(n.log)
		if err != nil {
			t.Fatal(err)
		}
		out = nil
		for line := range strings.Lines(string(b)) {
			out = append(out, strings.Fields(line))
		}
		if len(out) >= count {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := os.Truncate(n.log, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

// haproxy is a real one with its runtime socket.
type haproxy struct{ addr, socket string }

func startHAProxy(t testing.TB, p pair, more string) haproxy {
	t.Helper()
	dir := t.TempDir()
	h := haproxy{addr: "127.0.0.1:" + freePort(t), socket: filepath.Join(dir, "s")}
	conf := fmt.Sprintf(`global
  stats socket %s mode 600 level admin
  maxconn 2000
  tune.ssl.default-dh-param 2048
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend f
  bind %s ssl crt %s alpn h2,http/1.1 %s
  http-request return status 200 content-type text/plain string fine
`, h.socket, h.addr, p.both, more)
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon(t, []string{h.addr, h.socket}, "haproxy", "-db", "-f", file)
	return h
}

// counters are those of the frontend, by name.
func (h haproxy) counters(t testing.TB) map[string]int {
	t.Helper()
	c, err := net.Dial("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte("show stat\n"))
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	names := strings.Split(strings.TrimPrefix(lines[0], "# "), ",")
	out := map[string]int{}
	for _, l := range lines[1:] {
		if !strings.HasPrefix(l, "f,FRONTEND,") {
			continue
		}
		for i, v := range strings.Split(l, ",") {
			var n int
			if _, err := fmt.Sscan(v, &n); err == nil {
				out[names[i]] = n
			}
		}
	}
	return out
}
