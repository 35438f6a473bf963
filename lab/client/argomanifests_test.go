package client_test

const podTemplate = `
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: sample:1.0
        command: [/sample]
        readinessProbe: {exec: {command: [/sample, ready]}, periodSeconds: 1}
`

const canaryRollout = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  strategy: {canary: {steps: [{setWeight: 25}, {pause: {}}]}}
` + podTemplate

const blueGreenRollout = `
apiVersion: v1
kind: Service
metadata: {name: active}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: preview}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  strategy: {blueGreen: {activeService: active, previewService: preview, autoPromotionEnabled: false}}
` + podTemplate

const referredDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
` + podTemplate

const referringRollout = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 2
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
`
