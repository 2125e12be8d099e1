package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// LoopbackOnly lets a request through only if its Host is this machine and its
// Origin, if it has one, is a page of this machine. That keeps pages of other
// sites out, and names that resolve to 127.0.0.1 (DNS rebinding).
func LoopbackOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := loopbackProblem(r); p != nil {
			p.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// LoopbackAllowed reports whether LoopbackOnly lets r through, for listeners
// that refuse in their own way.
func LoopbackAllowed(r *http.Request) bool { return loopbackProblem(r) == nil }

func loopbackProblem(r *http.Request) *Problem {
	if !loopbackHost(r.Host) {
		return newProblem(http.StatusForbidden, "host_refused",
			"the Host %q is not this machine", shortened(r.Host)).
			withHint("reach the server as localhost, 127.0.0.1 or [::1]")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !loopbackOrigin(origin) {
		return newProblem(http.StatusForbidden, "origin_refused",
			"pages of %q may not use this server", shortened(origin)).
			withHint("only pages that were loaded from localhost, 127.0.0.1 or [::1] may")
	}
	return nil
}

// loopbackHost reports whether a Host header, with or without a port, names
// this machine.
func loopbackHost(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopbackHost(u.Host)
}
