package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// body is what nginx answers: a hundred bytes.
const body = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"

// nginx is one server with a plain and a TLS port on loopback.
type nginx struct {
	dir        string
	cmd        *exec.Cmd
	plain, tls string // host:port
	status     string
}

const config = `worker_processes 1; daemon off; pid %[1]s/pid; error_log %[1]s/error.log crit;
worker_rlimit_nofile 65536;
events { worker_connections 32768; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; http2_max_requests 1000000000;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; ssl_protocols TLSv1.3;
  ssl_session_cache shared:a:16m;
  server { listen 127.0.0.1:%[2]s backlog=16384; location / { return 200 "%[5]s"; } }
  server { listen 127.0.0.1:%[3]s ssl http2 backlog=16384; location / { return 200 "%[5]s"; } }
  server { listen 127.0.0.1:%[4]s; location / { stub_status; } }
}
`

func startNginx(ctx context.Context) (*nginx, error) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx"
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return nil, err
	}
	n := &nginx{dir: dir}
	ports, err := freePorts(3)
	if err == nil {
		err = certificate(dir)
	}
	if err == nil {
		text := strings.ReplaceAll(config, "http2_max_requests 1000000000;", "")
		err = os.WriteFile(filepath.Join(dir, "nginx.conf"), fmt.Appendf(nil, text, dir, ports[0], ports[1], ports[2], body), 0o644)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	n.plain, n.tls, n.status = "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1], "http://127.0.0.1:"+ports[2]
	n.cmd = exec.CommandContext(ctx, path, "-c", filepath.Join(dir, "nginx.conf"))
	n.cmd.Stderr = os.Stderr
	if err := n.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("nginx is needed as the server: %w", err)
	}
	for range 100 {
		if _, err = n.requests(); err == nil {
			return n, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	n.stop()
	return nil, fmt.Errorf("nginx did not come up: %w", err)
}

func (n *nginx) stop() {
	_ = n.cmd.Process.Signal(os.Interrupt)
	_ = n.cmd.Wait()
	_ = os.RemoveAll(n.dir)
}

// requests is how many requests nginx has served, its own status pages included.
func (n *nginx) requests() (uint64, error) {
	resp, err := http.Get(n.status)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 3 {
		return 0, errors.New("the status page is not nginx's")
	}
	var accepted, handled, served uint64
	_, err = fmt.Sscan(lines[2], &accepted, &handled, &served)
	return served, err
}

func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		out = append(out, port)
	}
	return out, nil
}

// certificate writes a self-signed P-256 pair.
func certificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}
