package notify

import (
	"slices"
	"strings"
)

// destinations are where a message goes, by their names in the configuration.
func (c *Config) destinations(m Message) []string {
	var out []string
	switch {
	case len(m.Destinations) > 0:
		out = c.known(m.Destinations)
	case m.Person != "":
		out = c.ofPerson(m.Person)
	default:
		out = c.routed(m)
	}
	if len(out) == 0 {
		out = c.Fallback
	}
	return out
}

// known drops what the configuration does not, or no longer, know.
func (c *Config) known(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return c.destination(n) == nil })
}

// ofPerson compares names as the CI systems do, whatever their case.
func (c *Config) ofPerson(name string) []string {
	for person, to := range c.People {
		if strings.EqualFold(person, name) {
			return to
		}
	}
	return nil
}

func (c *Config) routed(m Message) []string {
	for _, r := range c.Routes {
		if (r.Owner == "" || r.Owner == m.Owner) && (r.Severity == "" || r.Severity == m.Severity) {
			return r.To
		}
	}
	return nil
}

func (c *Config) destination(name string) *Destination {
	for i := range c.Destinations {
		if c.Destinations[i].Name == name {
			return &c.Destinations[i]
		}
	}
	return nil
}
