package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	argoBinary  = "argo-rollouts" // beside the lab's own
	argoCommand = "rollouts-controller"

	// ArgoRolloutsNamespace is the namespace that Argo Rollouts takes for its own.
	ArgoRolloutsNamespace = "argo-rollouts"

	argoStartTimeout = 2 * time.Minute
	argoStopTimeout  = 10 * time.Second
	pollPause        = 50 * time.Millisecond
)

// ArgoRollouts is the real controller of Argo Rollouts, running beside a lab.
type ArgoRollouts struct {
	process *process
	log     string
}

// StartArgoRollouts installs Argo Rollouts' CRDs, starts its controller with all rights, and returns when the
// controller reconciles. It runs until Stop, until the lab ends, or until this process ends, whichever is first; ctx
// only bounds the start. It can be stopped and started again; two at a time would work against each other, as none
// waits to be the leader, so the second is refused.
//
// To the API server it is what the published image is: its user agent and its field manager are rollouts-controller.
// Its metrics and health ports are the kernel's choice and of no use here; upstream opens them on every address.
func (l *Lab) StartArgoRollouts(ctx context.Context) (*ArgoRollouts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, argoStartTimeout, fmt.Errorf("not reconciling after %v", argoStartTimeout))
	defer cancel()
	l.argoMu.Lock()
	defer l.argoMu.Unlock()
	if l.argo != nil && l.argo.running() {
		return nil, errors.New("start Argo Rollouts: it runs already")
	}
	api, err := dynamic.NewForConfig(l.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	if err := l.installArgo(ctx); err != nil {
		return nil, fmt.Errorf("install Argo Rollouts: %w", err)
	}
	a, err := l.launchArgo()
	if err != nil {
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	if err := a.awaitReconciling(ctx, api); err != nil {
		a.process.kill()
		return nil, fmt.Errorf("start Argo Rollouts: %w%s", err, a.logTail())
	}
	l.argo = a
	go func() {
		select {
		case <-l.ended:
			a.process.kill()
		case <-a.process.ended:
		}
	}()
	return a, nil
}

// argoPath returns the path of something that was built with the controller: "" is the controller itself.
func (l *Lab) argoPath(suffix string) (string, error) {
	return l.beside(argoBinary + suffix)
}

func (l *Lab) launchArgo() (*ArgoRollouts, error) {
	binary, err := l.argoPath("")
	if err != nil {
		return nil, err
	}
	a := &ArgoRollouts{log: filepath.Join(l.status.Directory, argoBinary+".log")}
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the controller has its own by then
	// Not bound to a context: it outlives the call that starts it, until Stop.
	command := exec.Command(binary, //nolint:noctx // as said
		"--kubeconfig", l.Kubeconfig(), "--leader-elect=false", "--qps=-1", "--metricsPort=0", "--healthzPort=0")
	command.Args[0] = argoCommand // its user agent and field manager, as in the published image
	command.Dir = l.status.Directory
	command.Env = append(os.Environ(), "POD_NAMESPACE="+ArgoRolloutsNamespace)
	command.Stdout, command.Stderr = log, log
	a.process, err = startProcess(command)
	return a, err
}

// awaitReconciling shows the controller a Rollout that is not valid, which makes no pods, until it says so. Its health
// endpoint would answer before there is anything to be healthy.
func (a *ArgoRollouts) awaitReconciling(ctx context.Context, api dynamic.Interface) error {
	rollouts := api.Resource(rolloutResource).Namespace(ArgoRolloutsNamespace)
	probe := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": rolloutResource.GroupVersion().String(), "kind": "Rollout",
		"metadata": map[string]any{"generateName": "is-reconciling-"}, "spec": map[string]any{},
	}}
	probe, err := rollouts.Create(ctx, probe, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = rollouts.Delete(ctx, probe.GetName(), metav1.DeleteOptions{}) }()
	err = poll(ctx, a.process.ended, func() (bool, error) {
		seen, err := rollouts.Get(ctx, probe.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		phase, _, err := unstructured.NestedString(seen.Object, "status", "phase")
		return phase != "", err
	})
	if errors.Is(err, errEnded) {
		err = errors.Join(err, a.process.err)
	}
	return err
}

// Stop ends the controller and waits until it is gone. What it made stays as it is, and nothing reconciles it.
func (a *ArgoRollouts) Stop() error {
	if !a.running() {
		return nil
	}
	if err := a.process.stop(argoStopTimeout); err != nil {
		return fmt.Errorf("stop Argo Rollouts: %w", err)
	}
	return nil
}

func (a *ArgoRollouts) running() bool {
	select {
	case <-a.process.ended:
		return false
	default:
		return true
	}
}

// Ended is closed when the controller's process has ended.
func (a *ArgoRollouts) Ended() <-chan struct{} { return a.process.ended }

// PID returns the controller's process id.
func (a *ArgoRollouts) PID() int { return a.process.command.Process.Pid }

// LogFile returns the path of the controller's log. It is gone when the lab has stopped.
func (a *ArgoRollouts) LogFile() string { return a.log }

func (a *ArgoRollouts) logTail() string {
	content, err := os.ReadFile(a.log)
	if err != nil {
		return ""
	}
	tail := &tailBuffer{}
	_, _ = tail.Write(content)
	return tail.addition()
}

// stopArgo stops the controller, if one runs.
func (l *Lab) stopArgo() error {
	l.argoMu.Lock()
	defer l.argoMu.Unlock()
	if l.argo == nil {
		return nil
	}
	return l.argo.Stop()
}
