package evidence_test

import (
	"encoding/base64"
	"errors"
	"math"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"seatrial/evidence"
)

func TestPatterns(t *testing.T) {
	r := evidence.NewRedactor()
	for _, c := range []struct{ in, want string }{
		{"Authorization: Bearer abc.def", "Authorization: [redacted]"},
		{"authorization=Digest username=\"u\", response=\"r\"\nnext", "authorization=[redacted]\nnext"},
		{`{"Authorization":"Bearer abc","x":1}`, `{"Authorization":"[redacted]","x":1}`},
		{`{"Cookie":["a=b; c=d"],"x":1}`, `{"Cookie":["[redacted]"],"x":1}`},
		{`"{\"cookie\":\"a=b\",\"x\":1}"`, `"{\"cookie\":\"[redacted]\",\"x\":1}"`},
		{"Set-Cookie: sid=1; HttpOnly\r\nX: y", "Set-Cookie: [redacted]\r\nX: y"},
		{"X-Api-Key: k1", "X-Api-Key: [redacted]"},
		{"get https://user:pa55@host/path?x=1", "get https://[redacted]@host/path?x=1"},
		{"http://host/?email=a@b", "http://host/?email=a@b"},
		{"postgres://u:p/a?s@db:5432/x", "postgres://[redacted]@db:5432/x"},
		{"root:hunter2@tcp(db:3306)/x", "[redacted]@tcp(db:3306)/x"},
		{"/x?access_token=abc&y=1", "/x?access_token=[redacted]&y=1"},
		{"/x?a=1;password=abc#frag", "/x?a=1;password=[redacted]#frag"},
		{"DB_PASSWORD=hunter2 run", "DB_PASSWORD=[redacted] run"},
		{"host=db password='a b' user=x", "host=db password='[redacted]' user=x"},
		{`{"client_secret":"abc","x":1}`, `{"client_secret":"[redacted]","x":1}`},
		{"sent Bearer abcdefghijklmnopqrstuvwx now", "sent Bearer [redacted] now"},
		{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_def!", "jwt [redacted]!"},
		{"GET /orders/{id}?page=2 took 41.2 ms", "GET /orders/{id}?page=2 took 41.2 ms"},
		{"run: bin/shop --db-password hunter2 --port 80", "run: bin/shop --db-password [redacted] --port 80"},
		{"run: shop -token t0k3n", "run: shop -token [redacted]"},
		{"shop --password --verbose", "shop --password --verbose"},
		{"auht: {bearer: t0k3n}", "auht: {bearer: [redacted]}"},
		{"auth: {bearer: {env: TOKEN}}", "auth: {bearer: {env: TOKEN}}"},
		{`headers: {X-Api-Key: "${env:SHOP_KEY}"}`, `headers: {X-Api-Key: "${env:SHOP_KEY}"}`},
		{`Authorization: "${env:A}", X-Api-Key: "k1"`, "Authorization: [redacted]"},
		{`{a-token: "t0k3n", X-Api-Key: "${env:A}"}`, `{a-token: "[redacted]", X-Api-Key: "${env:A}"}`},
		{"Authorization: Bearer abc ${env:A}", "Authorization: [redacted]"},
		{"(load.headers.X-Api-Key takes it)", "(load.headers.X-Api-Key takes it)"},
		{"basic figures of the run", "basic figures of the run"},
	} {
		got := r.String(c.in)
		if got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
		if again := r.String(got); again != got {
			t.Errorf("%q: redacting twice gives %q", got, again)
		}
	}
}

func TestKnownSecretsInTheirForms(t *testing.T) {
	const secret = `s3cr&t/"va lue`
	r := evidence.NewRedactor(secret, "", "ab", "line one of key\nline two of key")
	for _, in := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
		base64.StdEncoding.EncodeToString([]byte("u:" + secret + "!")),
		base64.URLEncoding.EncodeToString([]byte("us:" + secret)),
		`s3cr\u0026t/\"va lue`, `s3cr&amp;t/&#34;va lue`, `s3cr&t/\"va lue`,
		"line one of key", "line two of key", "pin ab.",
	} {
		if got := r.String("before " + in + " after"); !strings.Contains(got, evidence.Mask) {
			t.Errorf("%q was kept: %q", in, got)
		}
	}
	if got := r.String("abacus"); got != "abacus" {
		t.Errorf("a short secret took a part of a word: %q", got)
	}
	if got := r.Error(errors.New("dial " + secret)).Error(); strings.Contains(got, secret) {
		t.Errorf("error kept the secret: %q", got)
	}
	if r.Error(nil) != nil {
		t.Error("nil became an error")
	}
}

// However text is cut into writes, the writer finds a secret in it and loses nothing else.
func TestWriterFindsSplitSecrets(t *testing.T) {
	const secret = "canary-4f9a1c"
	rapid.Check(t, func(t *rapid.T) {
		r := evidence.NewRedactor(secret)
		filler := rapid.StringMatching(`[a-z \n]{0,40}`)
		var in, want strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			f := filler.Draw(t, "filler")
			in.WriteString(f + " " + secret)
			want.WriteString(f + " " + evidence.Mask)
		}
		var out strings.Builder
		w := r.Writer(&out)
		for rest := in.String(); rest != ""; {
			k := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if _, err := w.Write([]byte(rest[:k])); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want.String() {
			t.Fatalf("got %q, want %q", out.String(), want.String())
		}
	})
}

func TestWriterBoundsALineWithoutEnd(t *testing.T) {
	const secret = "canary-4f9a1c"
	var out strings.Builder
	w := evidence.NewRedactor(secret).Writer(&out)
	chunk := strings.Repeat("x", 1000)
	for range 300 {
		if _, err := w.Write([]byte(chunk + secret[:5])); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(secret[5:])); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() < 200_000 {
		t.Errorf("only %d bytes were written of a line of 300 kB: the line is held without bound", out.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), secret) {
		t.Error("the secret was written")
	}
	if n := strings.Count(out.String(), evidence.Mask); n != 300 {
		t.Errorf("%d masks, want 300", n)
	}
}

func TestRunIsCopiedWithoutSecrets(t *testing.T) {
	const secret = "canary-4f9a1c"
	run := &evidence.Run{Sentence: secret, Warnings: []string{"x " + secret},
		Errors: map[string]uint64{secret: 1}, Environment: &evidence.Environment{Services: map[string]string{"web": "http://u:p@h"}},
		Rates: evidence.Rates{Offered: math.Inf(1)}}
	got := evidence.NewRedactor(secret).Run(run)
	if got.Sentence != evidence.Mask || got.Warnings[0] != "x "+evidence.Mask || got.Errors[evidence.Mask] != 1 {
		t.Errorf("kept: %+v", got)
	}
	if s := got.Environment.Services["web"]; s != "http://[redacted]@h" {
		t.Errorf("URL is %q", s)
	}
	if got.Rates.Offered != 0 || len(got.Warnings) != 2 {
		t.Errorf("the infinite figure: %v, warnings %q", got.Rates.Offered, got.Warnings)
	}
	if run.Sentence != secret || run.Environment.Services["web"] != "http://u:p@h" {
		t.Error("the caller's run was changed")
	}
}

// Whatever surrounds it, a known secret never survives, and redacting twice changes nothing more.
func FuzzRedact(f *testing.F) {
	const secret = "canary-4f9a1c"
	for _, s := range []string{"x " + secret, "password=" + secret + "&a=b", "Cookie: \x00" + secret + secret, "postgres://u:" + secret + "@h", `{"token":"` + secret + `"}`, "\xff" + secret} {
		f.Add(s)
	}
	r := evidence.NewRedactor(secret)
	f.Fuzz(func(t *testing.T, s string) {
		got := r.String(s)
		if strings.Contains(got, secret) {
			t.Fatalf("%q keeps the secret: %q", s, got)
		}
		if again := r.String(r.String(got)); again != r.String(got) {
			t.Fatalf("%q: redacting does not come to rest: %q, %q", s, got, again)
		}
	})
}
