package podtemplate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// plainTemplate is a pod template as people write it, and completeTemplate what the API server made of it on a ReplicaSet.
const plainTemplate = `
metadata: {labels: {app: web}}
spec:
  serviceAccountName: web
  overhead: {cpu: 0.0001}
  volumes:
  - {name: scratch}
  - {name: host, hostPath: {path: /var}}
  - {name: config, configMap: {name: web}}
  - {name: secret, secret: {secretName: web}}
  - {name: down, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: image, image: {reference: "data:1"}}
  - name: all
    projected:
      sources:
      - {serviceAccountToken: {path: token}}
      - {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: claim, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
  initContainers: [{name: first, image: web}]
  containers:
  - name: app
    image: registry:5000/web:1
    ports: [{containerPort: 80}]
    env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
    resources: {limits: {cpu: 1}}
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 80}}
    startupProbe: {exec: {command: ["true"]}}
    lifecycle: {preStop: {httpGet: {port: 80}}}
  - {name: latest, image: "web:latest"}
  - {name: digested, image: "web@sha256:0000000000000000000000000000000000000000000000000000000000000000"}
`

const completeTemplate = `
metadata: {creationTimestamp: null, labels: {app: web}}
spec:
  serviceAccountName: web
  serviceAccount: web
  overhead: {cpu: 1m}
  dnsPolicy: ClusterFirst
  restartPolicy: Always
  schedulerName: default-scheduler
  securityContext: {}
  terminationGracePeriodSeconds: 30
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: host, hostPath: {path: /var, type: ""}}
  - {name: config, configMap: {name: web, defaultMode: 420}}
  - {name: secret, secret: {secretName: web, defaultMode: 420}}
  - {name: down, downwardAPI: {defaultMode: 420, items: [{path: l, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}]}}
  - {name: image, image: {reference: "data:1", pullPolicy: IfNotPresent}}
  - name: all
    projected:
      defaultMode: 420
      sources:
      - {serviceAccountToken: {path: token, expirationSeconds: 3600}}
      - {downwardAPI: {items: [{path: l, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}]}}
  - name: claim
    ephemeral:
      volumeClaimTemplate:
        metadata: {creationTimestamp: null}
        spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}
  initContainers:
  - {name: first, image: web, imagePullPolicy: Always, resources: {}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
  containers:
  - name: app
    image: registry:5000/web:1
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports: [{containerPort: 80, protocol: TCP}]
    env: [{name: NODE, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}]
    resources: {limits: {cpu: "1"}}
    livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    readinessProbe: {grpc: {port: 80, service: ""}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    startupProbe: {exec: {command: ["true"]}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    lifecycle: {preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}}
  - {name: latest, image: "web:latest", imagePullPolicy: Always, resources: {}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
  - name: digested
    image: web@sha256:0000000000000000000000000000000000000000000000000000000000000000
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
`

func readTemplate(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	out := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestATemplateIsTheSameWithAndWithoutDefaults(t *testing.T) {
	plain, complete := readTemplate(t, plainTemplate), readTemplate(t, completeTemplate)
	if !SameCompleted(plain, complete) || !SameCompleted(complete, plain) {
		t.Error("the completed template counts as another one")
	}
	if plain.Spec.DNSPolicy != "" || plain.Spec.Containers[0].LivenessProbe.HTTPGet.Path != "" {
		t.Error("the template itself was completed")
	}
	for name, change := range map[string]func(*corev1.PodTemplateSpec){
		"an image":                        func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "web:2" },
		"an annotation":                   func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"a": "b"} },
		"a default that is set otherwise": func(t *corev1.PodTemplateSpec) { t.Spec.DNSPolicy = corev1.DNSDefault },
		"a field that has no default": func(t *corev1.PodTemplateSpec) {
			no := false
			t.Spec.EnableServiceLinks = &no
		},
		"a mode of files": func(t *corev1.PodTemplateSpec) {
			mode := int32(0o600)
			t.Spec.Volumes[2].ConfigMap.DefaultMode = &mode
		},
		"a pull policy":  func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].ImagePullPolicy = corev1.PullNever },
		"one more probe": func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].LivenessProbe = &corev1.Probe{} },
	} {
		t.Run(name, func(t *testing.T) {
			other := plain.DeepCopy()
			change(other)
			if SameCompleted(other, complete) || SameCompleted(complete, other) {
				t.Error("it makes no difference")
			}
		})
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"web": corev1.PullAlways, "web:latest": corev1.PullAlways, "web:1": corev1.PullIfNotPresent, "registry:5000/web": corev1.PullAlways,
		"registry:5000/web:1": corev1.PullIfNotPresent, "web@sha256:abc": corev1.PullIfNotPresent, "web:latest@sha256:abc": corev1.PullAlways,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%s is pulled %s, want %s", image, got, want)
		}
	}
}
