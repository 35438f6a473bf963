package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/snapshot"
	"tidemark.dev/tidemark/internal/stamp"
	"tidemark.dev/tidemark/internal/workload"
	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
)

// argo runs Argo Rollouts' own controller beside the lab with mode pin, from the first test that needs it on.
var argo struct {
	start sync.Once
	err   error
}

// rolloutScene is a scene whose workload is the Argo Rollout web.
type rolloutScene struct {
	*scene
	rollouts *client.Rollouts
}

const web = "rollout/web"

// openRollouts makes a namespace in mode pin on the shared lab, with Argo Rollouts beside it. The controller of Tidemark was
// there before the definition of Rollouts was. The test must have its turn.
func openRollouts(t *testing.T, namespace string) *rolloutScene {
	t.Helper()
	return openRolloutsIn(t, namespace, v1.ModePin)
}

// openRolloutsIn is openRollouts with another mode as the label of the namespace, or none.
func openRolloutsIn(t *testing.T, namespace, mode string) *rolloutScene {
	t.Helper()
	if err := shared.pins.open(shared.binary); err != nil {
		t.Fatal(err)
	}
	s := venue{t, shared.pins.lab}.open(namespace, mode)
	s.controller = shared.pins.program
	argo.start.Do(func() {
		_, argo.err = s.Lab.StartArgoRollouts(context.Background()) // it ends with the lab
	})
	s.must(argo.err)
	rollouts, err := s.Lab.Rollouts(namespace)
	s.must(err)
	return &rolloutScene{s, rollouts}
}

// canarySteps stop at one pod, and go on when somebody promotes it.
const canarySteps = "{canary: {maxSurge: 1, maxUnavailable: 0, steps: [{setWeight: 20}, {pause: {}}]}}"

// rolloutOf is the manifest of the Rollout web with a pod template of one release.
func rolloutOf(pods int, strategy, image string, more ...string) string {
	return asRollout(edition("deployment/web", pods, image), strategy) + indent("      ", strings.Join(more, "\n"))
}

// asRollout is the manifest of a Deployment as that of a Rollout.
func asRollout(deployment, strategy string) string {
	return strings.NewReplacer("apiVersion: apps/v1\n", "apiVersion: argoproj.io/v1alpha1\n",
		"kind: Deployment\nspec:\n", "kind: Rollout\nspec:\n  strategy: "+strategy+"\n").Replace(deployment)
}

// is waits until the Rollout is in a phase, and returns its state.
func (s *rolloutScene) is(phase client.RolloutPhase) client.RolloutState {
	s.t.Helper()
	var state client.RolloutState
	s.eventually("rollout web to be "+string(phase), func() error {
		err := s.rollouts.InPhase(s.t.Context(), "web", phase)
		if err == nil {
			state, err = s.rollouts.State(s.t.Context(), "web")
		}
		return err
	})
	return state
}

// at waits until the Rollout has rolled to another revision than the one given, and is in a phase.
func (s *rolloutScene) at(phase client.RolloutPhase, not client.RolloutState) client.RolloutState {
	s.t.Helper()
	var state client.RolloutState
	s.eventually("another revision of rollout web to be "+string(phase), func() error {
		err := s.rollouts.InPhase(s.t.Context(), "web", phase)
		if err == nil {
			state, err = s.rollouts.State(s.t.Context(), "web")
		}
		if err == nil && state.Current == not.Current {
			err = errors.New("the revision is still " + state.Current)
		}
		return err
	})
	return state
}

// promoted promotes the Rollout in full, again and again until it is done: Argo may be in the middle of a look that undoes the first.
func (s *rolloutScene) promoted() client.RolloutState {
	s.t.Helper()
	var state client.RolloutState
	s.eventually("rollout web to be promoted in full", func() error {
		err := s.rollouts.PromoteFull(s.t.Context(), "web")
		if err == nil {
			err = s.rollouts.InPhase(s.t.Context(), "web", client.RolloutHealthy)
		}
		if err == nil {
			state, err = s.rollouts.State(s.t.Context(), "web")
		}
		return err
	})
	return state
}

// begins makes the Rollout with its first release, and waits until that is pinned. Mode pin is one more revision where nothing
// decides the stamp at admission.
func (s *rolloutScene) begins(pods int, strategy string) (state client.RolloutState, pin string) {
	s.t.Helper()
	s.apply(webConfig + rolloutOf(pods, strategy, "web:1", richTemplate))
	pin = s.pinned(web, "web", "")
	state = s.promoted()
	return state, pin
}

// ownConfiguration fails the test if any container of the scene, by the lab's record, ever started with another configuration
// than its own revision's copy of the ConfigMap has. The keys are those that releases differ in.
func (s *rolloutScene) ownConfiguration(configMap string, keys ...string) {
	s.t.Helper()
	sets := &appsv1.ReplicaSetList{}
	s.must(s.API.List(s.t.Context(), sets, ctrlclient.InNamespace(s.Namespace)))
	copies := map[string]*corev1.ConfigMap{}
	for i := range sets.Items {
		pins, err := snapshot.ParsePins(s.Namespace, sets.Items[i].Spec.Template.Annotations[v1.AnnotationPins])
		s.must(err)
		name := pins[workload.Object{Kind: workload.ConfigMap, Namespace: s.Namespace, Name: configMap}]
		if name == "" {
			continue // the revision from before mode pin
		}
		copied := &corev1.ConfigMap{}
		s.must(s.API.Get(s.t.Context(), ctrlclient.ObjectKey{Namespace: s.Namespace, Name: name}, copied))
		copies[sets.Items[i].Name] = copied
	}
	starts, err := s.Starts(s.t.Context())
	s.must(err)
	pinned := 0
	for _, start := range starts {
		own := copies[start.Pod[:strings.LastIndexByte(start.Pod, '-')]]
		if own == nil || len(start.Args) > 0 && strings.HasPrefix(start.Args[0], "--exit-after") {
			continue
		}
		pinned++
		for _, key := range keys {
			if got := start.Env(key); got != own.Data[key] {
				s.t.Errorf("%s started with %s=%q, and its revision's copy %s has %q", start.Pod, key, got, own.Name, own.Data[key])
			}
		}
	}
	if pinned == 0 {
		s.t.Error("no container of a pinned revision started")
	}
}

// richTemplate are fields of a pod template of which the API completes many.
const richTemplate = `
initContainers:
- {name: first, image: "tidemark-sample:1", args: [--exit-after=1ms], ports: [{containerPort: 99}]}
volumes:
- {name: empty}
- {name: config, configMap: {name: web}}
- {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
- name: all
  projected:
    sources:
    - {serviceAccountToken: {path: token}}
    - {configMap: {name: web, items: [{key: MODE, path: mode}]}}
`

func TestAnArgoRolloutIsAWorkload(t *testing.T) {
	turn(t)
	s := openRollouts(t, "rollouts-canary")
	const pods = 5
	one, first := s.begins(pods, canarySteps)
	s.eventually("status to know it", func() error {
		status, err := s.Status(s.t.Context(), web)
		if err == nil && (status.Verdict != "in-step" || len(status.Pods) != pods) {
			err = fmt.Errorf("it is %s with %d pods: %s", status.Verdict, len(status.Pods), status.Reason)
		}
		return err
	})

	s.apply(strings.Replace(webConfig, "MODE: one", "MODE: two", 1) + rolloutOf(pods, canarySteps, "web:2", richTemplate))
	second := s.pinned(web, "web", first)
	two := s.at(client.RolloutPaused, one)
	s.eventually("one pod of the new release", func() error {
		got, err := s.Loaded(t.Context(), mode)
		return errors.Join(err, labtest.Equal("what runs", fmt.Sprint(got), "map[one:4 two:1]"))
	})
	s.why(web, "the canary pauses at step 2 of 2")

	s.must(s.rollouts.Abort(t.Context(), "web"))
	s.is(client.RolloutDegraded)
	s.loads(mode, map[string]int{"one": pods})
	s.why(web, "aborted")

	s.must(s.rollouts.Retry(t.Context(), "web"))
	s.is(client.RolloutPaused)
	s.must(s.rollouts.Promote(t.Context(), "web"))
	s.is(client.RolloutHealthy)
	s.loads(mode, map[string]int{"two": pods})
	s.verdict(web, "in-step")

	s.lists(one.Revision, "web:1", first)
	s.lists(0, "web:2", second)
	s.does(fmt.Sprintf("diff %s %d current", web, one.Revision), "web:1 → web:2", `MODE: "one" → "two"`)
	s.goesBack(fmt.Sprintf("rollback %s --to-revision %d --wait", web, one.Revision), two, map[string]int{"two": pods - 1, "one": 1})
	s.is(client.RolloutHealthy)
	s.loads(mode, map[string]int{"one": pods})
	s.tells(web, "RolledBack", "configmap/web")
	s.caughtUp()
	s.staysBack(web, first)
	s.lists(0, "web:1", first)
	if got := s.snapshots("web"); len(got) != 2 {
		t.Errorf("there are the snapshots %v, want two", got)
	}
	s.ownConfiguration("web", "MODE")
}

// goesBack calls `tidemark rollback … --wait`, which must wait for the canary on the way back, and promotes that once it is said to
// pause. The containers that run then, by what they loaded, are given.
func (s *rolloutScene) goesBack(call string, from client.RolloutState, paused map[string]int) {
	s.t.Helper()
	out, errOut, ended := &safeBuffer{}, &safeBuffer{}, make(chan int, 1)
	go func() { ended <- s.callTo(out, errOut, nil, strings.Fields(call)...) }()
	s.eventually("tidemark "+call+" to say that the canary pauses", func() error {
		if said := errOut.String(); !strings.Contains(said, "Paused: CanaryPauseStep") {
			return errors.New("it says " + out.String() + said)
		}
		return nil
	})
	s.at(client.RolloutPaused, from)
	s.loads(mode, paused)
	if strings.Contains(out.String(), "is rolled out") {
		s.t.Errorf("tidemark %s says while the canary pauses:\n%s", call, out)
	}
	s.must(s.rollouts.Promote(s.t.Context(), "web"))
	if code := <-ended; code != 0 {
		s.t.Errorf("tidemark %s: exit status %d\n%s", call, code, errOut)
	}
	s.holdsAll(call, said{out: out.String()}, []string{"is rolled back to revision", "is rolled out: Healthy"})
	if state := s.is(client.RolloutHealthy); state.Current != state.Stable {
		s.t.Errorf("it is said to be rolled out, and stable is %s, not %s", state.Stable, state.Current)
	}
}

// lists waits until `tidemark history` lists a revision, or the current one for 0, with the image of its program and the copy of
// the ConfigMap web that its pods read.
func (s *rolloutScene) lists(number int64, image, copied string) {
	s.t.Helper()
	want := v1.RevisionImage{Container: "app", Image: image}
	s.eventually(fmt.Sprintf("history to list revision %d with image %s and copy %s", number, image, copied), func() error {
		list := s.listed(web)
		i := slices.IndexFunc(list, func(r v1.Revision) bool { return number == 0 && r.Current || number != 0 && r.Revision == number })
		if i < 0 {
			return fmt.Errorf("it is not in %+v", list)
		}
		r := list[i]
		if !slices.Contains(r.Images, want) || len(r.Configuration) != 1 || r.Configuration[0].Copy != copied || r.Reach != "in-full" || r.Available != "available" {
			return fmt.Errorf("it lists %+v", r)
		}
		return nil
	})
}

func TestABlueGreenRolloutReadsItsOwnConfiguration(t *testing.T) {
	turn(t)
	s := openRollouts(t, "rollouts-bluegreen")
	const pods = 2
	s.apply(`
apiVersion: v1
kind: Service
metadata: {name: active}
spec: {selector: {app: web}, ports: [{port: 80}]}
`)
	const strategy = "{blueGreen: {activeService: active, autoPromotionEnabled: false, scaleDownDelaySeconds: 1}}"
	one, first := s.begins(pods, strategy)
	s.apply(strings.Replace(webConfig, "MODE: one", "MODE: two", 1) + rolloutOf(pods, strategy, "web:2", richTemplate))
	s.pinned(web, "web", first)
	s.at(client.RolloutPaused, one)
	s.loads(mode, map[string]int{"one": pods, "two": pods})
	s.why(web, "BlueGreenPause")
	s.exit("one")
	s.loads(mode, map[string]int{"one": pods, "two": pods})
	two := s.at(client.RolloutPaused, one) // also where the deploy became two revisions

	s.must(s.rollouts.Promote(t.Context(), "web"))
	s.loads(mode, map[string]int{"two": pods})
	s.must(s.rollouts.Undo(t.Context(), "web", one.Revision))
	s.tells(web, "RolledBack", "configmap/web")
	s.loads(mode, map[string]int{"one": pods, "two": pods})
	s.at(client.RolloutPaused, two)
	s.must(s.rollouts.Promote(t.Context(), "web"))
	s.loads(mode, map[string]int{"one": pods})
	s.ownConfiguration("web", "MODE")
}

// exit ends the programs of all pods that have loaded the mode.
func (s *rolloutScene) exit(loaded string) {
	s.t.Helper()
	running, err := s.Running(s.t.Context())
	s.must(err)
	for _, start := range running {
		if mode(start) != loaded {
			continue
		}
		_, err := s.Lab.Exit(s.t.Context(), wire.Selector{Namespace: s.Namespace, PodPrefix: start.Pod, Container: start.Container}, 1)
		s.must(err)
	}
}

// referring is a Rollout that takes its template from the Deployment web.
const referring = `---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 5
  strategy: ` + canarySteps + `
  selector: {matchLabels: {app: web}}
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
`

func TestARolloutThatRefersToADeploymentIsPinnedByIt(t *testing.T) {
	turn(t)
	s := openRollouts(t, "rollouts-ref")
	const pods, deployment = 5, "deployment/web"
	s.apply(webConfig + edition(deployment, 0, "web:1") + referring)
	first := s.pinned(deployment, "web", "")
	var one client.RolloutState
	s.eventually("the first pin to be everywhere", func() error {
		if err := s.rollouts.PromoteFull(t.Context(), "web"); err != nil {
			return err
		}
		running, err := s.Loaded(t.Context(), mode)
		if err == nil {
			one, err = s.rollouts.State(t.Context(), "web")
		}
		return errors.Join(err, s.rollouts.InPhase(t.Context(), "web", client.RolloutHealthy),
			labtest.Equal("what runs", fmt.Sprint(running), "map[one:5]"), s.everyPodIsPinned())
	})
	if pins := s.pinsOf(web); len(pins) > 0 {
		t.Errorf("the Rollout itself has the pins %v", pins)
	}

	s.apply(strings.Replace(webConfig, "MODE: one", "MODE: two", 1) + edition(deployment, 0, "web:2"))
	second := s.pinned(deployment, "web", first)
	s.at(client.RolloutPaused, one)
	s.loads(mode, map[string]int{"one": pods - 1, "two": 1})
	s.exit("one")
	s.loads(mode, map[string]int{"one": pods - 1, "two": 1})
	list := s.all()
	if len(list) != 1 || list[0].Workload.Kind != "Rollout" || len(list[0].Pods) != pods || list[0].Mode != v1.ModePin || list[0].Unfinished == nil {
		t.Errorf("status shows %+v, want the Rollout alone, with its pods", list)
	}

	s.must(s.rollouts.Promote(t.Context(), "web"))
	s.loads(mode, map[string]int{"two": pods})
	two := s.is(client.RolloutHealthy)
	s.must(s.rollouts.Undo(t.Context(), "web", one.Revision))
	s.tells(deployment, "RolledBack", "configmap/web")
	s.loads(mode, map[string]int{"two": pods - 1, "one": 1})
	paused := s.at(client.RolloutPaused, two)

	// Back from a canary is back to the stable revision, which needs no steps.
	s.lists(0, "web:1", first)
	s.does("rollback "+web+" --wait", "is rolled out: Healthy")
	s.loads(mode, map[string]int{"two": pods})
	s.caughtUp()
	s.verdict(web, "in-step")
	s.lists(0, "web:2", second)

	s.goesBack(fmt.Sprintf("rollback %s --to-revision %d --wait", web, paused.Revision), s.is(client.RolloutHealthy), map[string]int{"two": pods - 1, "one": 1})
	s.loads(mode, map[string]int{"one": pods})
	s.caughtUp()
	if pin := s.pinned(deployment, "web", ""); pin != first {
		t.Errorf("pinned to %s after the rollback, want %s", pin, first)
	}
	s.verdict(web, "rolled-back")
	s.ownConfiguration("web", "MODE")
}

// everyPodIsPinned is an error while a pod of the scene has no pins.
func (s *rolloutScene) everyPodIsPinned() error {
	pods := &corev1.PodList{}
	if err := s.API.List(s.t.Context(), pods, ctrlclient.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].Annotations[v1.AnnotationPins] == "" {
			return errors.New(pods.Items[i].Name + " has no pins")
		}
	}
	return nil
}

// all is what status shows of the namespace, but for the sentinel.
func (s *rolloutScene) all() []v1.Fleet {
	s.t.Helper()
	out, err := s.Tidemark(s.t.Context(), "status", "-o", "json")
	s.must(err)
	list := v1.FleetList{}
	s.must(json.Unmarshal([]byte(out), &list))
	return slices.DeleteFunc(list.Items, func(f v1.Fleet) bool { return f.Workload.Name == "sentinel" })
}

func TestTheRevisionOfARichTemplateIsFound(t *testing.T) {
	turn(t)
	s := openRollouts(t, "rollouts-rich")
	s.apply(`
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: rich, annotations: {tidemark.dev/mode: observe}}
spec:
  replicas: 0
  strategy: {canary: {stableMetadata: {labels: {role: stable}}, canaryMetadata: {labels: {role: canary}}, antiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}
  selector: {matchLabels: {app: rich}}
  template:
    metadata: {labels: {app: rich}}
    spec:
      serviceAccountName: default
      overhead: null
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
      volumes:
      - {name: scratch}
      - {name: host, hostPath: {path: /var}}
      - {name: config, configMap: {name: web}}
      - {name: secret, secret: {secretName: web}}
      - {name: down, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}
      - {name: image, image: {reference: "data:1", pullPolicy: Never}}
      - {name: iscsi, iscsi: {targetPortal: "10.0.0.1", iqn: "iqn.2001-04.com.example:storage", lun: 0}}
      - {name: all, projected: {sources: [{serviceAccountToken: {path: token}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}, {configMap: {name: web}}]}}
      - {name: claim, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1.5Gi}}}}}}
      initContainers:
      - {name: first, image: web}
      - {name: sidecar, image: "web:latest", restartPolicy: Always, startupProbe: {tcpSocket: {port: 80}}}
      containers:
      - name: app
        image: registry:5000/web:1
        ports: [{containerPort: 80}, {containerPort: 81, protocol: UDP}]
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]
        resources: {limits: {cpu: 0.5, memory: 1e9}}
        livenessProbe: {httpGet: {port: 80}}
        readinessProbe: {grpc: {port: 80}, periodSeconds: 3}
        startupProbe: {exec: {command: ["true"]}}
        lifecycle: {preStop: {httpGet: {port: 80}}, postStart: {exec: {command: ["true"]}}}
        securityContext: {runAsUser: 1}
      - {name: digested, image: "web@sha256:0000000000000000000000000000000000000000000000000000000000000000"}
`)
	s.eventually("its ReplicaSet to be found", func() error {
		rich := s.get("rollout/rich")
		revisions, err := cluster.Retained(t.Context(), s.API, rich)
		if err == nil && (len(revisions) != 1 || !revisions[0].Matches) {
			err = fmt.Errorf("its revisions are %+v; it is %v", revisions, rich.Object["status"])
		}
		return err
	})
	s.kubectl("patch", "rollout/rich", "--type=merge", "-p", `{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`)
	s.eventually("the older one to match no more", func() error {
		revisions, err := cluster.Retained(t.Context(), s.API, s.get("rollout/rich"))
		if err == nil && (len(revisions) != 2 || revisions[0].Matches == revisions[1].Matches) {
			err = fmt.Errorf("its revisions are %+v", revisions)
		}
		return err
	})
	rollouts, err := s.Lab.Rollouts(s.Namespace)
	s.must(err)
	s.must(rollouts.Undo(t.Context(), "rich", 1))
	revisions, err := cluster.Retained(t.Context(), s.API, s.get("rollout/rich"))
	s.must(err)
	if i := slices.IndexFunc(revisions, func(r stamp.Revision) bool { return r.Matches }); i < 0 || revisions[i].Created.IsZero() {
		t.Errorf("after the undo the revisions are %+v, want one that matches", revisions)
	}
}
