package cli

import (
	"os"

	"github.com/spf13/pflag"
)

// settingsFlags adds the flags that say which server to ask; the returned
// function reads the settings once the flags are parsed.
func settingsFlags(flags *pflag.FlagSet) func() (Settings, error) {
	server := flags.String("server", "", "address of the admin listener")
	key := flags.String("key", "", "the admin key")
	return func() (Settings, error) {
		s := Settings{Server: *server, Key: *key, KeyFrom: "--key"}
		if s.Server == "" {
			s.Server = os.Getenv("HEDDLE_SERVER")
		}
		if s.Server == "" {
			s.Server = "127.0.0.1:4444"
		}
		if s.Key == "" {
			s.Key, s.KeyFrom = os.Getenv("HEDDLE_KEY"), "HEDDLE_KEY"
		}
		return s, nil
	}
}
