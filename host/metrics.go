package host

import (
	"sync/atomic"

	"github.com/heddle-live/heddle/admin"
)

// register adds what the parts count to /metrics: one row each.
func (c *counters) register(m *admin.Metrics) error {
	commit, err := m.AddHistogram("heddle_commit_seconds",
		"Time from taking a batch to answering its writers.", admin.LatencyBuckets())
	if err != nil {
		return err
	}
	journal, err := m.AddHistogram("heddle_journal_append_seconds",
		"Time of one synced append to the journal.", admin.LatencyBuckets())
	if err != nil {
		return err
	}
	c.ingest.CommitSeconds, c.ingest.JournalSeconds = commit.Observe, journal.Observe
	return m.Add(
		total("heddle_transactions_total", "Transactions made durable.", &c.ingest.Transactions),
		total("heddle_transactions_refused_total", "Transactions refused for their content.",
			&c.ingest.Refused),
		total("heddle_transactions_replayed_total",
			"Transactions answered from the receipt of an Idempotency-Key.", &c.ingest.Replayed),
		total("heddle_commits_total", "Batches made durable, each with one fsync.",
			&c.ingest.Commits),
		total("heddle_queries_total", "One-shot queries answered.", &c.ingest.Queries),
		admin.Metric{
			Name: "heddle_engine_commit_seconds_total", Kind: admin.Counter,
			Help: "Time spent inside the engine for transactions.",
			Read: func(emit admin.Emit) { emit(float64(c.ingest.EngineNanos.Load()) / 1e9) },
		},
		gauge("heddle_watched_keys", "Keys of views that are watched.",
			&c.views.WatchedKeys),
		gauge("heddle_viewers", "Subscriptions to keys of views, counted where they end.",
			&c.views.Viewers),
		total("heddle_groups_published_total", "Groups written to tracks of keys.",
			&c.views.Groups),
		total("heddle_frames_published_total", "Frames written to tracks of keys.",
			&c.views.Frames),
		total("heddle_published_bytes_total", "Bytes of those frames.", &c.views.Bytes),
		gauge("heddle_sessions", "Sessions of peers.", &c.lite.SessionsOpen),
		gauge("heddle_subscriptions", "Subscriptions of peers.", &c.lite.SubscriptionsOpen),
		gauge("heddle_group_streams_open", "Streams of newest groups that are kept open.",
			&c.lite.GroupStreamsOpen),
		total("heddle_requests_refused_total", "Request streams that were reset.",
			&c.lite.RequestsRefused),
		total("heddle_groups_sent_total", "Groups begun on a stream to a viewer.",
			&c.lite.GroupsSent),
		total("heddle_frames_sent_total", "Frames sent to viewers.", &c.lite.FramesSent),
		total("heddle_sent_bytes_total", "Bytes of groups sent to viewers.", &c.lite.BytesSent),
		total("heddle_groups_superseded_total",
			"Groups that a viewer did not get because a newer one stood ready.",
			&c.lite.GroupsSuperseded),
		total("heddle_stream_credit_waits_total",
			"Groups that waited for a peer's stream credit.",
			&c.lite.StreamCreditWaits),
		total("heddle_blocked_writes_total", "Groups that waited for a peer's flow control.",
			&c.lite.BlockedWrites),
	)
}

func total(name, help string, n *atomic.Uint64) admin.Metric {
	return admin.Metric{
		Name: name, Help: help, Kind: admin.Counter,
		Read: func(emit admin.Emit) { emit(float64(n.Load())) },
	}
}

func gauge(name, help string, n *atomic.Int64) admin.Metric {
	return admin.Metric{
		Name: name, Help: help, Kind: admin.Gauge,
		Read: func(emit admin.Emit) { emit(float64(n.Load())) },
	}
}

// diskMetrics are the figures of a disk that fills up.
func (s *Server) diskMetrics() []admin.Metric {
	return []admin.Metric{
		{
			Name: "heddle_disk_free_bytes", Kind: admin.Gauge,
			Help: "Bytes free in the file system of the data directory.",
			Read: func(emit admin.Emit) {
				if free, err := s.journal.Free(); err == nil {
					emit(float64(free))
				}
			},
		},
		{
			Name: "heddle_read_only_graphs", Kind: admin.Gauge,
			Help: "Graphs that refuse writes because too little disk space is free.",
			Read: func(emit admin.Emit) { emit(float64(s.graphs.readOnly())) },
		},
	}
}

// readOnly counts the graphs that refuse writes.
func (g *graphs) readOnly() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, h := range g.open {
		if h.loop.ReadOnly() {
			n++
		}
	}
	return n
}
