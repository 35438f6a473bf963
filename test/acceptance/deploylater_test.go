package acceptance

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"

	"tidemark.dev/tidemark/internal/cli"
)

// TestTheFixSixHoursLaterGoesThrough plays the incident with the times that it had, and with what a guard does by default: a lease of
// three minutes, half an hour for the deploy. The clocks of the command line and of the API server are handed to it; helm's lock
// goes by none.
func TestTheFixSixHoursLaterGoesThrough(t *testing.T) {
	d := deploy(t, "guard-later")
	g := d.guard([]string{"--started-by", "ann"}, "--set", "bootDelay=1h,release=2")
	d.eventually("the upgrade to be pending", d.isPending)
	d.killedWhole(g)

	soon := d.after(20 * time.Minute)
	if code, out := soon.tidemark("releases", "checkout", "--exit-code"); code != 0 || !strings.Contains(out, "unknown") || !strings.Contains(out, "20m") {
		t.Errorf("after 20 minutes: exit status %d: %s", code, out)
	}
	if code, out := soon.upgrade("forward"); code != 125 || !strings.Contains(out, "whether it ended is certain after") {
		t.Errorf("after 20 minutes, while it may be alive: exit status %d: %s", code, out)
	}
	d.must(d.isPending())

	evening := d.after(6 * time.Hour)
	if code, out := evening.tidemark("releases", "checkout", "--exit-code"); code != 1 || !strings.Contains(out, "abandoned") || !strings.Contains(out, "6h") {
		t.Errorf("six hours later: exit status %d: %s", code, out)
	}
	_, _, err := d.Lab.Helm(t.Context(), "upgrade", "checkout", d.chart, "-n", d.Namespace, "--kubeconfig", evening.kubeconfig)
	if err == nil || !strings.Contains(err.Error(), "another operation") {
		t.Errorf("six hours later, plain helm: %v", err)
	}
	if code, out := evening.upgrade("report"); code != 125 || !strings.Contains(out, "policy report leaves it to a person") {
		t.Errorf("six hours later, by policy report: exit status %d: %s", code, out)
	}
	if code, out := evening.upgrade("forward"); code != 0 || !strings.Contains(out, "revision 2 is marked failed") {
		t.Errorf("six hours later, by policy forward: exit status %d: %s", code, out)
	}
	if got := d.statuses(); got != "1 superseded, 2 failed, 3 deployed" {
		t.Errorf("the revisions are %s", got)
	}
}

// hoursOn is a time from now, for whoever asks this machine or the API server.
type hoursOn struct {
	*deployed
	by         time.Duration
	kubeconfig string
}

// after passes requests on to the API server, whose answers are given that much later.
func (d *deployed) after(by time.Duration) *hoursOn {
	d.t.Helper()
	config := d.Lab.RESTConfig()
	transport, err := rest.TransportFor(config)
	d.must(err)
	api, err := url.Parse(config.Host)
	d.must(err)
	server := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(api) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			return nil
		},
	})
	d.t.Cleanup(server.Close)
	k := clientcmdapi.NewConfig()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	k.Clusters["lab"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	k.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab"}
	k.CurrentContext = "lab"
	l := &hoursOn{d, by, filepath.Join(d.t.TempDir(), "kubeconfig")}
	d.must(clientcmd.WriteToFile(*k, l.kubeconfig))
	return l
}

// upgrade deploys release 3 under guard, and gives its exit status with what was said.
func (l *hoursOn) upgrade(policy string) (code int, out string) {
	l.t.Helper()
	helm, err := l.Lab.HelmCommand(l.t.Context(), "upgrade", "checkout", l.chart, "--wait", "--set", "release=3", "-n", l.Namespace, "--kubeconfig", l.kubeconfig)
	l.must(err)
	return l.run(append([]string{"guard", "--policy", policy, "--", helm.Path}, helm.Args[1:]...)...)
}

// tidemark runs another command in the namespace.
func (l *hoursOn) tidemark(args ...string) (code int, out string) {
	l.t.Helper()
	return l.run(append(args, "-n", l.Namespace, "--kubeconfig", l.kubeconfig, "--cache-dir", filepath.Dir(l.kubeconfig))...)
}

// leaseObserved is more than the three minutes for which a silent lease is observed.
const leaseObserved = 190 * time.Second

// run runs the command line. Its clock passes quickly for as long as a lease is observed, and then as any.
func (l *hoursOn) run(args ...string) (code int, out string) {
	l.t.Helper()
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	clock := clocktesting.NewFakeClock(time.Now().Add(l.by))
	quick := clock.Now().Add(leaseObserved)
	go func() {
		const beat = 10 * time.Millisecond
		for ctx.Err() == nil {
			time.Sleep(beat)
			if clock.HasWaiters() && clock.Now().Before(quick) {
				clock.Step(2 * time.Second)
			} else {
				clock.Step(beat)
			}
		}
	}()
	said := &safeBuffer{}
	code = cli.Run(ctx, cli.Config{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: said, ErrOut: said}, Clock: clock}, args)
	return code, said.String()
}
