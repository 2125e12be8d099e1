package admin

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// readyTimeout is how long a part may take to answer a readiness probe.
const readyTimeout = 2 * time.Second

type healthAnswer struct {
	Status string `json:"status" enum:"live,ready"`
}

func (a *API) live(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, healthAnswer{"live"})
}

func (a *API) ready(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	failing := a.service.Problems(ctx)
	if len(failing) == 0 {
		return writeJSON(w, http.StatusOK, healthAnswer{"ready"})
	}
	names := make([]string, len(failing))
	details := make([]Detail, len(failing))
	for i, f := range failing {
		names[i] = f.Part
		details[i] = Detail{Message: f.Reason, Part: f.Part}
	}
	shown := names[:min(len(names), errorsMax)]
	p := newProblem(http.StatusServiceUnavailable, "not_ready", "not ready: %s",
		strings.Join(shown, ", "))
	p.retryAfter = 1
	return p.withErrors(details, len(details))
}

func (a *API) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	a.metrics.Handler().ServeHTTP(w, r)
	return nil
}

func (a *API) serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	writeBody(w, http.StatusOK, "application/openapi+json", a.document)
	return nil
}

func (a *API) serveDocs(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	writeBody(w, http.StatusOK, "text/html; charset=utf-8", a.page)
	return nil
}
