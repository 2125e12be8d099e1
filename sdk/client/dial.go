package client

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/qmux"
	"github.com/heddle-live/heddle/protocol/quic"
)

// ErrURL is wrapped by errors of Dial that its URL causes.
var ErrURL = errors.New("invalid server URL")

// opener returns what opens sessions to rawURL.
func opener(
	rawURL string, cfg Config,
) (func(context.Context) (protocol.Session, error), error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	if u.Port() == "" && u.Scheme == "moq" || u.Hostname() == "" {
		return nil, fmt.Errorf("%w: %q needs a host and a port", ErrURL, rawURL)
	}
	versions := lite.VersionNames()
	switch u.Scheme {
	case "ws", "wss":
		return func(ctx context.Context) (protocol.Session, error) {
			return qmux.Dial(ctx, rawURL, qmux.Config{
				Protocols: versions, HTTPClient: cfg.HTTPClient,
			})
		}, nil
	case "moq":
		return func(ctx context.Context) (protocol.Session, error) {
			d, err := quicConfig(ctx, u, cfg)
			if err != nil {
				return nil, err
			}
			return quic.Dial(ctx, u.Host, d)
		}, nil
	case "http", "https":
		if u.Scheme == "http" && !isLoopback(u.Hostname()) {
			return nil, fmt.Errorf("%w: http is for servers on loopback only", ErrURL)
		}
		target := *u
		target.Scheme = "https"
		return func(ctx context.Context) (protocol.Session, error) {
			d, err := quicConfig(ctx, u, cfg)
			if err != nil {
				return nil, err
			}
			return quic.DialWebTransport(ctx, target.String(), d)
		}, nil
	}
	return nil, fmt.Errorf("%w: scheme %q; moq, https, http, ws and wss are known",
		ErrURL, u.Scheme)
}

// quicConfig decides which certificate to trust.
func quicConfig(ctx context.Context, u *url.URL, cfg Config) (quic.DialConfig, error) {
	d := quic.DialConfig{
		TLS: cfg.TLS, CertificateSHA256: cfg.CertificateSHA256, Protocols: lite.VersionNames(),
	}
	if d.TLS != nil || d.CertificateSHA256 != nil || !isLoopback(u.Hostname()) {
		return d, nil
	}
	hash, err := fetchHash(ctx, u.Host, cfg.HTTPClient)
	if err != nil {
		return d, err
	}
	d.CertificateSHA256 = &hash
	return d, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// fetchHash asks the server's HTTP side for the hash of its certificate: on
// loopback nobody can answer in its place.
func fetchHash(ctx context.Context, host string, hc *http.Client) ([32]byte, error) {
	var hash [32]byte
	if hc == nil {
		hc = http.DefaultClient
	}
	address := "http://" + host + "/certificate.sha256"
	fail := func(err error) ([32]byte, error) {
		return hash, fmt.Errorf("certificate hash from %s: %w", address, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail(err)
	}
	response, err := hc.Do(request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return fail(err)
	}
	text := strings.TrimSpace(string(body))
	n, err := hex.Decode(hash[:], []byte(text[:min(len(text), 2*len(hash))]))
	if response.StatusCode != http.StatusOK || err != nil || n != len(hash) {
		return fail(fmt.Errorf("status %d, body %.80q", response.StatusCode, text))
	}
	return hash, nil
}
