package quic

import (
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
)

func TestRefusals(t *testing.T) {
	l := listen(t, Config{AllowOrigin: func(r *http.Request) bool {
		return r.Header.Get("Origin") != "https://evil.example"
	}})
	ctx := testContext(t)
	tests := []struct {
		name, transport string
		cfg             DialConfig
		want            string
	}{
		{
			"native, unknown token", transportQUIC,
			DialConfig{Protocols: []string{"moq-lite-99"}},
			"no application protocol",
		},
		{
			"WebTransport, unknown token", transportWebTransport,
			DialConfig{Protocols: []string{"moql"}},
			"400",
		},
		{
			"WebTransport, foreign origin", transportWebTransport,
			DialConfig{Header: http.Header{"Origin": {"https://evil.example"}}},
			"403",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := l.dial(ctx, test.transport, test.cfg)
			if err == nil {
				_ = s.CloseWithError(0, "")
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
	t.Run("another certificate", func(t *testing.T) {
		wrong := *l
		wrong.hash[0] ^= 1
		for _, transport := range []string{transportQUIC, transportWebTransport} {
			if _, err := wrong.dial(ctx, transport, DialConfig{}); !errors.Is(err, ErrCertificate) {
				t.Errorf("%s: got %v", transport, err)
			}
		}
	})
}

func TestServerPreferenceDecides(t *testing.T) {
	l := listen(t, Config{Protocols: []string{"moq-lite-06", testToken}})
	both(t, func(t *testing.T, transport string) {
		s, err := l.dial(testContext(t), transport,
			DialConfig{Protocols: []string{"moq-lite-04", testToken, "moq-lite-06"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.CloseWithError(0, "")
		if s.Protocol() != "moq-lite-06" {
			t.Errorf("got %s", s.Protocol())
		}
		if got := (<-l.sessions).Protocol(); got != "moq-lite-06" {
			t.Errorf("server has %s", got)
		}
	})
}

func TestChoose(t *testing.T) {
	ours := []string{"moq-lite-05"}
	tests := []struct {
		name   string
		offers []string
		want   string
	}{
		{"none", nil, ""},
		{"first of many", []string{`"moq-lite-05", "moq-lite-04", "moql"`}, "moq-lite-05"},
		{"last, over two header lines", []string{`"a"`, `"moq-lite-05"`}, "moq-lite-05"},
		{"unknown only", []string{`"moql"`}, ""},
		{"a token, not a string", []string{`moq-lite-05`}, ""},
		{"malformed", []string{`"moq-lite-05`}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := choose(ours, test.offers)
			if got != test.want || ok != (test.want != "") {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

func TestCodesSurviveWebTransport(t *testing.T) {
	for code := range protocol.StreamCode(2000) {
		if got := streamCode(wireCode(code, true), true); got != code {
			t.Fatalf("%d came back as %d", code, got)
		}
	}
	if got := streamCode(wtSessionGone, true); got != protocol.CodeClosed {
		t.Errorf("session gone became %d", got)
	}
	if wire := wireCode(0x1e, true); wire != 0x52e4a40fa8db+0x1e+1 {
		t.Errorf("0x1e became %#x", uint64(wire))
	}
}

func TestDevelopmentCertificateSuitsBrowsers(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	cert, _, err := DevelopmentCertificate(now)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if d := leaf.NotAfter.Sub(leaf.NotBefore); d != 13*24*time.Hour {
		t.Errorf("valid for %v", d)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if err := leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
}
