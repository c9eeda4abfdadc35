module consumers/argo-workflows

go 1.25

require (
	github.com/sirupsen/logrus v1.9.3
	github.com/tidwall/gjson v1.18.0
	k8s.io/apimachinery v0.33.1
)

require (
	github.com/go-logr/logr v1.4.2 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
	golang.org/x/sys v0.0.0-20220715151400-c0bba94af5f8 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
	k8s.io/utils v0.0.0-20241104100929-3ea5e8cea738 // indirect
)
