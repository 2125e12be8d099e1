package cli

import (
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"os"

	"github.com/spf13/pflag"

	"github.com/heddle-live/heddle/host/config"
)

// settings say which server to ask and with which key.
type settings struct {
	server  string // URL of the admin listener
	key     string // the admin key
	keyFrom string // where the key was found, for messages
}

// settingsFlags adds the flags that say which server to ask; the returned
// function reads the settings once the flags are parsed.
func settingsFlags(flags *pflag.FlagSet) func() (settings, error) {
	config.AddFlags(flags, config.GroupClient)
	return func() (settings, error) {
		cfg, err := config.Load(flags, os.Environ())
		if err != nil {
			return settings{}, &Error{Code: ExitUsage, Text: err.Error()}
		}
		return findKey(&cfg)
	}
}

// findKey takes the key that is set for clients, else the one that is set for a
// server by the same file or environment, else the one that a server keeps in
// its data directory. The last is for this machine's server only: it is nobody
// else's business.
func findKey(cfg *config.Config) (settings, error) {
	s := settings{server: cfg.Server, key: cfg.Key, keyFrom: cfg.Source("key")}
	if s.key == "" {
		s.key, s.keyFrom = cfg.AdminKey, cfg.Source("admin_key")
	}
	if s.key != "" || !onThisMachine(cfg.Server) {
		return s, nil
	}
	path := config.AdminKeyFile(cfg.DataDir)
	key, err := config.ReadAdminKey(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, &Error{Code: ExitUsage, Text: err.Error()}
	}
	s.key, s.keyFrom = key, path
	return s, nil
}

func onThisMachine(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}
