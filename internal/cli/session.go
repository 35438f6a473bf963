package cli

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/reported"
	"tidemark.dev/tidemark/internal/stamp"
)

// session is what all verbs share: the streams, and the flags that lead to the cluster.
type session struct {
	Config
	flags       *genericclioptions.ConfigFlags
	system      string
	kinds       []string
	defaultMode string
	// shared are the flags of all verbs, which know whether somebody wrote them.
	shared *pflag.FlagSet
}

func (s *session) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	s.shared = flags
	s.flags.AddFlags(flags)
	flags.StringVar(&s.system, "tidemark-namespace", s.system, "Namespace in which Tidemark is installed, if it is.")
	flags.StringArrayVar(&s.kinds, "kind", nil,
		"Further kind of workload as GROUP/VERSION/KIND=PATH.TO.TEMPLATE, as the controller has it. May be repeated.")
	flags.StringVar(&s.defaultMode, "default-mode", s.defaultMode,
		"Mode where neither a workload nor its namespace chooses one, as the controller has it: observe, roll or pin.")
	flags.DurationVar(&s.Margins.RefreshLag, "refresh-lag", s.Margins.RefreshLag,
		"How long a mounted file may lag behind what its kubelet could read. Default: what the controller states, else 2m.")
	flags.DurationVar(&s.Margins.ReadLag, "read-lag", s.Margins.ReadLag,
		"How stale what a connected kubelet reads may be. Default: what the controller states, else 2s.")
	flags.DurationVar(&s.Margins.Skew, "clock-skew", s.Margins.Skew,
		"How far any two clocks of the cluster may be apart. Default: what the controller states, else 1s.")
	s.completeFlags(root)
}

// in is the session with another context of the kubeconfig.
func (s *session) in(name string) *session {
	flags := newFlags()
	own, shared := reflect.ValueOf(flags).Elem(), reflect.ValueOf(s.flags).Elem()
	for i := range own.NumField() {
		// Each exported field is one flag of the command line, by the pointer to its value; so is one that comes with a newer library.
		if field := own.Type().Field(i); field.IsExported() && field.Type.Kind() == reflect.Pointer {
			own.Field(i).Set(shared.Field(i))
		}
	}
	flags.Context = &name
	other := *s
	other.flags = flags
	return &other
}

func newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
}

// takeHelms takes helm's flags about the cluster as the defaults of this program's own; KUBECONFIG both read.
func (s *session) takeHelms() {
	getenv := s.getenv()
	for variable, to := range map[string]*string{
		"HELM_NAMESPACE": s.flags.Namespace, "HELM_KUBECONTEXT": s.flags.Context, "HELM_KUBEAPISERVER": s.flags.APIServer,
		"HELM_KUBECAFILE": s.flags.CAFile, "HELM_KUBETLS_SERVER_NAME": s.flags.TLSServerName, "HELM_KUBETOKEN": s.flags.BearerToken,
		"HELM_KUBEASUSER": s.flags.Impersonate,
	} {
		*to = getenv(variable)
	}
	if groups := strings.Trim(getenv("HELM_KUBEASGROUPS"), ", "); groups != "" {
		*s.flags.ImpersonateGroup = strings.Split(groups, ",")
	}
	if insecure, err := strconv.ParseBool(getenv("HELM_KUBEINSECURE_SKIP_TLS_VERIFY")); err == nil {
		*s.flags.Insecure = insecure
	}
}

// fromHelm reports whether the value of a flag, if it has one, is what helm set its variable to, which it does to the namespace
// whether somebody names one or not.
func (s *session) fromHelm(flag string) bool { return s.HelmPlugin && !s.shared.Changed(flag) }

func (s *session) getenv() func(string) string {
	if s.Getenv != nil {
		return s.Getenv
	}
	return os.Getenv
}

// connect connects to the cluster that the flags name.
func (s *session) connect() (*cluster.Connection, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	config.UserAgent = "tidemark/" + s.Build.Version
	mapper, err := s.flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return cluster.Connect(config, mapper, s.Clock.Now)
}

// namespace is the namespace that the flags or the kubeconfig name.
func (s *session) namespace() (string, error) {
	ns, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	return ns, err
}

// namespaceGiven reports whether a flag names the namespace, or helm does.
func (s *session) namespaceGiven() bool { return s.flags.Namespace != nil && *s.flags.Namespace != "" }

// allKinds are the built-in kinds and those that flags add.
func (s *session) allKinds() ([]cluster.Kind, error) {
	kinds := cluster.BuiltinKinds()
	for _, text := range s.kinds {
		k, err := cluster.ParseKind(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--kind: %w", err)}
		}
		kinds = cluster.WithKind(kinds, k)
	}
	return kinds, nil
}

func (s *session) mode() (stamp.Mode, error) {
	switch m := stamp.Mode(s.defaultMode); m {
	case stamp.Observe, stamp.Roll, stamp.Pin:
		return m, nil
	}
	return "", usagef("--default-mode: %q is no mode: write observe, roll or pin", s.defaultMode)
}

// survey is a look at the cluster that is not told yet what to look at.
func (s *session) survey(kinds []cluster.Kind) (cluster.Survey, error) {
	mode, err := s.mode()
	if err != nil {
		return cluster.Survey{}, err
	}
	if min(s.Margins.RefreshLag, s.Margins.ReadLag, s.Margins.Skew) < 0 {
		return cluster.Survey{}, usagef("--refresh-lag, --read-lag, --clock-skew: want 0 (what the controller states) or more")
	}
	c, err := s.connect()
	if err != nil {
		return cluster.Survey{}, err
	}
	return cluster.Survey{
		Client: c.Client, Now: c.Now, Kinds: kinds, System: s.system, DefaultMode: mode, Settings: s.Margins,
	}, nil
}

// asker asks pods what their programs loaded, through the API server.
func (s *session) asker(now func() time.Time) (*reported.Asker, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return reported.Proxied(config, now)
}

// mapper knows the short names of kinds.
func (s *session) mapper() (meta.RESTMapper, error) { return s.flags.ToRESTMapper() }
