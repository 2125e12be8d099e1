package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
)

// Config is what an API is built from. Service, AdminKey and Metrics are required.
type Config struct {
	Service  Service
	AdminKey string // what `Authorization: Bearer` must carry; at least 16 bytes
	Version  string // of the server, for the OpenAPI document
	Logger   *slog.Logger
	Metrics  *Metrics
	Limits   Limits
}

// Limits bounds what one request may ask for. A zero field means its default.
type Limits struct {
	BodyBytes     int64         // of every body but a load's; 1 MiB
	LoadBytes     int64         // of a load, as sent and again unpacked; 256 MiB
	LoadRows      int           // of a load; 4,000,000
	QueryRows     int           // in one answer; 10,000
	QueryDeadline time.Duration // of one query, waiting included; 5 s
}

// adminKeyBytesMin is the shortest admin key that New accepts.
const adminKeyBytesMin = 16

// callerAdmin is the caller of every request that carries the admin key, callerData
// of every other one.
const (
	callerAdmin = "admin"
	callerData  = "data"
)

// withoutKey marks the context of a request to a listener that asks for no key.
type withoutKey struct{}

func callerOf(r *http.Request) string {
	if r.Context().Value(withoutKey{}) != nil {
		return callerData
	}
	return callerAdmin
}

// API serves the routes. Immutable after New and safe for concurrent use.
type API struct {
	service Service
	limits  Limits
	logger  *slog.Logger
	metrics *Metrics
	version string

	keySum   [sha256.Size]byte
	requests atomic.Uint64 // numbers the requests that ended in status 500
	routes   []route
	document []byte // OpenAPI, as JSON
	page     []byte // the documentation page
}

// New checks cfg and prepares every route's documentation. It starts nothing.
func New(cfg Config) (*API, error) {
	switch {
	case cfg.Service == nil:
		return nil, errors.New("admin: Config.Service is missing")
	case cfg.Metrics == nil:
		return nil, errors.New("admin: Config.Metrics is missing")
	case len(cfg.AdminKey) < adminKeyBytesMin:
		return nil, fmt.Errorf("admin: the admin key has %d bytes, at least %d are needed",
			len(cfg.AdminKey), adminKeyBytesMin)
	}
	a := &API{
		service: cfg.Service,
		limits:  cfg.Limits.withDefaults(),
		logger:  cfg.Logger,
		metrics: cfg.Metrics,
		version: cfg.Version,
		keySum:  sha256.Sum256([]byte(cfg.AdminKey)),
		routes:  routes(),
	}
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	if err := a.metrics.watchRequests(a.routes); err != nil {
		return nil, err
	}
	var err error
	if a.document, err = openAPIDocument(a.routes, a.version, a.limits); err != nil {
		return nil, err
	}
	a.page, err = documentationPage(a.routes, a.version)
	return a, err
}

func (l Limits) withDefaults() Limits {
	if l.BodyBytes == 0 {
		l.BodyBytes = 1 << 20
	}
	if l.LoadBytes == 0 {
		l.LoadBytes = 256 << 20
	}
	if l.LoadRows == 0 {
		l.LoadRows = 4_000_000
	}
	if l.QueryRows == 0 {
		l.QueryRows = 10_000
	}
	if l.QueryDeadline == 0 {
		l.QueryDeadline = 5 * time.Second
	}
	return l
}

// OpenAPI returns the OpenAPI 3.1 document as JSON. The caller must not change it.
func (a *API) OpenAPI() []byte { return a.document }

// AdminHandler serves every route. All but /livez and /readyz need the admin key.
func (a *API) AdminHandler() http.Handler {
	return a.handler(func(r *route) bool { return true }, true)
}

// DataHandler serves the routes that need no key: queries and actions by the pages
// of this host. The caller mounts it at /v1/ of the data listener.
func (a *API) DataHandler() http.Handler {
	public := a.handler(func(r *route) bool { return r.right == rightPublic }, false)
	return LoopbackOnly(crossOrigin(public))
}

// handler builds a mux of the chosen routes; keyed says whether the listener
// asks for the admin key.
func (a *API) handler(chosen func(*route) bool, keyed bool) http.Handler {
	mux := chi.NewMux()
	adapter := humachi.NewAdapter(mux)
	for i := range a.routes {
		r := &a.routes[i]
		if !chosen(r) {
			continue
		}
		for _, path := range r.patterns() {
			adapter.Handle(&huma.Operation{Method: r.method, Path: path}, func(ctx huma.Context) {
				request, w := humachi.Unwrap(ctx)
				a.serve(r, keyed, w, request)
			})
		}
	}
	unknown := &route{right: rightKey, handle: (*API).unknownRoute}
	mux.NotFound(func(w http.ResponseWriter, r *http.Request) {
		a.serve(unknown, keyed, w, r)
	})
	other := &route{
		right: rightKey,
		handle: func(a *API, w http.ResponseWriter, r *http.Request) error {
			return a.wrongMethod(chosen, w, r)
		},
	}
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		a.serve(other, keyed, w, r)
	})
	return LoopbackOnly(mux)
}

// serve authorises a request, runs its route and answers an error.
func (a *API) serve(route *route, keyed bool, w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	status := route.status
	defer func() {
		if cause := recover(); cause != nil {
			a.logger.Error("panic in a request", "method", r.Method, "path", r.URL.Path,
				"cause", cause, "stack", string(debug.Stack()))
			status = http.StatusInternalServerError
			a.fail(w, r, errors.New("panic"))
		}
		route.observe(status, time.Since(started))
	}()
	err := error(nil)
	if keyed {
		err = a.authorise(route.right, r)
	} else {
		r = r.WithContext(context.WithValue(r.Context(), withoutKey{}, true))
	}
	if err == nil && len(route.flags) == 0 && r.URL.RawQuery != "" && route.right != rightOpen {
		_, err = queryFlags(r, nil)
	}
	if err == nil {
		err = route.refusedKey(r)
	}
	if err == nil {
		err = route.handle(a, w, r)
	}
	if err != nil {
		status = a.fail(w, r, err)
	}
}

// fail answers err and returns the status. It is the one place that logs
// internal errors.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) int {
	p := problemOf(err)
	if p.cause != nil {
		p.Request = strconv.FormatUint(a.requests.Add(1), 10)
		a.logger.Error("a request failed", "request", p.Request, "method", r.Method,
			"path", r.URL.Path, "error", p.cause)
	}
	p.write(w)
	return p.Status
}

// authorise checks the admin key. Pages for browsers and scrapers (rightPage)
// take it as the password of HTTP Basic as well; no other route does, since a
// browser repeats Basic credentials for any page that sends a request here.
func (a *API) authorise(right right, r *http.Request) error {
	if right == rightOpen {
		return nil
	}
	const how = "send the header `Authorization: Bearer KEY`; " +
		"the key is what the server was started with " +
		"(--admin-key, HEDDLE_ADMIN_KEY or its config file)"
	header := r.Header.Get("Authorization")
	key, ok := "", false
	scheme, rest, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "Bearer") {
		key, ok = strings.TrimSpace(rest), true
	} else if right == rightPage {
		_, key, ok = r.BasicAuth()
	}
	sum := sha256.Sum256([]byte(key))
	if ok && subtle.ConstantTimeCompare(sum[:], a.keySum[:]) == 1 {
		return nil
	}
	p := newProblem(http.StatusUnauthorized, "unauthorized", "this route needs the admin key").
		withHint(how)
	if header != "" {
		p.Code, p.Detail = "key_wrong",
			"the key in the Authorization header is not this server's admin key"
	}
	p.challenge = `Bearer realm="heddle admin"`
	if right == rightPage {
		p.challenge = `Basic realm="heddle admin: any name, the admin key as password", ` +
			p.challenge
	}
	return p
}

func (a *API) unknownRoute(_ http.ResponseWriter, r *http.Request) error {
	return newProblem(http.StatusNotFound, "route_unknown", "there is no route %s",
		shortened(r.URL.Path)).
		withHint("GET /docs and GET /openapi.json of the admin listener list all routes")
}

// wrongMethod names the methods that the path has.
func (a *API) wrongMethod(chosen func(*route) bool, w http.ResponseWriter, r *http.Request) error {
	var methods []string
	for i := range a.routes {
		matches := func(pattern string) bool { return pathMatches(pattern, r.URL.Path) }
		if chosen(&a.routes[i]) && slices.ContainsFunc(a.routes[i].patterns(), matches) {
			methods = append(methods, a.routes[i].method)
		}
	}
	slices.Sort(methods)
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return newProblem(http.StatusMethodNotAllowed, "method_not_allowed",
		"%s cannot be used on %s; it takes %s",
		shortened(r.Method), shortened(r.URL.Path), strings.Join(methods, ", "))
}

// pathMatches reports whether path fits a pattern; {x} fits one segment, and * all
// that follow.
func pathMatches(pattern, path string) bool {
	if start, rest := strings.CutSuffix(pattern, "/*"); rest {
		n := strings.Count(start, "/") + 1
		segments := strings.Split(path, "/")
		return len(segments) > n && pathMatches(start, strings.Join(segments[:n], "/"))
	}
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool {
		return w == g || strings.HasPrefix(w, "{") && g != ""
	})
}

// WriteError answers err as every route of this package does. It is for
// handlers of the host that stand beside them; a 500 is not logged.
func WriteError(w http.ResponseWriter, err error) { problemOf(err).write(w) }

// writeJSON sends v, which must be encodable.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	writeBody(w, status, "application/json", append(body, '\n'))
	return nil
}

// writeBody sends a whole body. A client that went away is no error of ours.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
