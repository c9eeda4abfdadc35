A likely mistake is a warning and not an error, unless the check is strict.

  $ training-operator validate warned
  warned/host-network.yaml:10:9: warning: spec.mxReplicaSpecs.Scheduler.template.spec.dnsPolicy: with hostNetwork the pod uses its node's DNS servers, which cannot resolve the job's replicas; set it to ClusterFirstWithHostNet
  warned/host-network.yaml:27:11: warning: spec.mxReplicaSpecs.Worker.template.spec.dnsPolicy: with hostNetwork the pod uses its node's DNS servers, which cannot resolve the job's replicas; set it to ClusterFirstWithHostNet
  warned/host-network.yaml:29:13: warning: spec.mxReplicaSpecs.Worker.template.spec.containers[0].ports: pods of Scheduler and Worker both use port 9091 of their node, so they cannot run on one node; give the roles different ports, or remove hostNetwork
  warned/processes.yaml:6:3: warning: spec.nprocPerNode: python starts one process in a Master, and no program starts the other 7; start the script with torchrun, or remove the field
  warned/processes.yaml:24:19: warning: spec.elasticPolicy.minReplicas: exceeds the number of replicas, so no worker starts to train; lower it, or use more workers
  warned/restarts.yaml:7:15: warning: spec.runPolicy.backoffLimit: restartPolicy is Never in every role, so the first container that fails ends the job, and only deleted or evicted pods count against this limit; set restartPolicy to OnFailure or ExitCode, or remove backoffLimit
  warned/restarts.yaml:24:7: warning: spec.tfReplicaSpecs.Worker.restartPolicy: Always restarts a container that ends with exit code 0, so the job never succeeds; use OnFailure
  warned/restarts.yaml:34:71: warning: spec.runPolicy.failurePolicy.rules[0].onPodConditions[1].type: "Ready" matches no failure, because only conditions that not every pod has are compared; use DisruptionTarget for pods that were taken away, or onExitCodes
  warned/training.yaml:10:5: warning: spec.runPolicy.ttlSecondsAfterFinished: the job is kept for 600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately; set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods
  warned/training.yaml:11:5: warning: spec.runPolicy.activeDeadlineSeconds: 0 seconds fails the job as soon as the operator sees it; set the seconds that the job may take, or remove it for no limit
  warned/training.yaml:13:5: warning: spec.mxReplicaSpecs.server: servers cannot find workers without a scheduler; add a Scheduler with 1 replica, or remove the servers
  warned/training.yaml:17:11: warning: spec.mxReplicaSpecs.server.template.spec.restartPolicy: Always has no effect, because the role's restartPolicy makes it Never; set spec.mxReplicaSpecs.server.restartPolicy instead, and remove this
  warned/training.yaml:22:28: warning: spec.mxReplicaSpecs.server.template.spec.containers[0].env[0].value: $(DMLC_NUM_SERVER) stays as it is, because the operator sets DMLC_NUM_SERVER after this variable; use $(DMLC_NUM_SERVER) in command or args, where it is replaced
  warned/training.yaml:23:15: warning: spec.mxReplicaSpecs.server.template.spec.containers[0].env[1]: DMLC_ROLE is set by the operator, which replaces this value; remove it, or use another name
  warned/training.yaml:33:40: warning: spec.mxReplicaSpecs.Worker.template.spec.containers[0].readinessProbe.httpGet.port: container "mxnet" has no port named "health"; use one of mxjob-port, or the port's number
  warned/training.yaml:38:45: warning: spec.mxReplicaSpecs.Worker.template.spec.containers[1].lifecycle.preStop.httpGet.port: container "tensorboard" has no port named "wbe"; use one of web, or the port's number
  warned/training.yaml:41:16: warning: spec.mxReplicaSpecs.Worker.template.spec.containers[1].volumeMounts[1].name: the pod has no volume "lgos"; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes
  warned/training.yaml:45:29: warning: spec.mxReplicaSpecs.Worker.template.spec.initContainers[0].volumeMounts[0].name: the pod has no volume "data"; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes
  7 valid jobs, 0 errors, 18 warnings
  $ training-operator validate warned/training.yaml --strict | tail -1
  1 valid job, 0 errors, 10 warnings
  [1]
  $ training-operator validate cases/single-worker.yaml --strict
  1 valid job, 0 errors, 0 warnings

A warning about a valid example would be a guess. These are certain.

  $ training-operator validate examples/mxnet
  examples/mxnet/inline.yaml:10:3: warning: spec.ttlSecondsAfterFinished: the job is kept for 3600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately; set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods
  6 valid jobs, 0 errors, 1 warning
  $ training-operator validate cases
  cases/every-exit-policy.yaml:10:7: warning: spec.mxReplicaSpecs.Scheduler.restartPolicy: Always restarts a container that ends with exit code 0, so the job never succeeds; use OnFailure
  cases/user-environment.yaml:24:15: warning: spec.mxReplicaSpecs.Worker.template.spec.containers[0].env[0]: DMLC_ROLE is set by the operator, which replaces this value; remove it, or use another name
  cases/user-environment.yaml:26:15: warning: spec.mxReplicaSpecs.Worker.template.spec.containers[0].env[2]: MX_CONFIG is set by the operator, which replaces this value; remove it, or use another name
  17 valid jobs, 0 errors, 3 warnings

The errors are those of `render`; only the exit codes differ.

  $ training-operator validate bad/negative-replicas.yaml bad/broken-quote.yaml > errors
  [1]
  $ training-operator render bad/negative-replicas.yaml bad/broken-quote.yaml 2>&1 | diff -u - errors | tail -n +3
  @@ -1,2 +1,3 @@
   bad/negative-replicas.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)
   bad/broken-quote.yaml:6:1: the quoted text above has no closing quotation mark; add it, or indent the line
  +0 valid jobs, 2 errors, 0 warnings
  [1]

Exit codes are as documented.

  $ training-operator validate cases/single-worker.yaml bad/negative-replicas.yaml
  bad/negative-replicas.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)
  1 valid job, 1 error, 0 warnings
  [1]
  $ training-operator validate bad/negative-replicas.yaml no/such/file.yaml
  bad/negative-replicas.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)
  no/such/file.yaml: no such file
  0 valid jobs, 2 errors, 0 warnings
  [2]
  $ training-operator validate
  ! error: the following required arguments were not provided:
  !   <FILE>...
  !
  ! Usage: training-operator validate <FILE>...
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator validate - < cases/single-worker.yaml
  1 valid job, 0 errors, 0 warnings

There are formats for programs and for CI systems. A bound in the problem implies the remedy; every other finding has one.

  $ training-operator validate bad/negative-replicas.yaml warned/training.yaml --output json
  {
    "errors": 1,
    "findings": [
      {
        "column": 7,
        "field": "spec.mxReplicaSpecs.Worker.replicas",
        "file": "bad/negative-replicas.yaml",
        "line": 10,
        "problem": "must be at least 0 (is -1)",
        "remedy": null,
        "severity": "error"
      },
      {
        "column": 5,
        "field": "spec.runPolicy.ttlSecondsAfterFinished",
        "file": "warned/training.yaml",
        "line": 10,
        "problem": "the job is kept for 600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately",
        "remedy": "set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods",
        "severity": "warning"
      },
      {
        "column": 5,
        "field": "spec.runPolicy.activeDeadlineSeconds",
        "file": "warned/training.yaml",
        "line": 11,
        "problem": "0 seconds fails the job as soon as the operator sees it",
        "remedy": "set the seconds that the job may take, or remove it for no limit",
        "severity": "warning"
      },
      {
        "column": 5,
        "field": "spec.mxReplicaSpecs.server",
        "file": "warned/training.yaml",
        "line": 13,
        "problem": "servers cannot find workers without a scheduler",
        "remedy": "add a Scheduler with 1 replica, or remove the servers",
        "severity": "warning"
      },
      {
        "column": 11,
        "field": "spec.mxReplicaSpecs.server.template.spec.restartPolicy",
        "file": "warned/training.yaml",
        "line": 17,
        "problem": "Always has no effect, because the role's restartPolicy makes it Never",
        "remedy": "set spec.mxReplicaSpecs.server.restartPolicy instead, and remove this",
        "severity": "warning"
      },
      {
        "column": 28,
        "field": "spec.mxReplicaSpecs.server.template.spec.containers[0].env[0].value",
        "file": "warned/training.yaml",
        "line": 22,
        "problem": "$(DMLC_NUM_SERVER) stays as it is, because the operator sets DMLC_NUM_SERVER after this variable",
        "remedy": "use $(DMLC_NUM_SERVER) in command or args, where it is replaced",
        "severity": "warning"
      },
      {
        "column": 15,
        "field": "spec.mxReplicaSpecs.server.template.spec.containers[0].env[1]",
        "file": "warned/training.yaml",
        "line": 23,
        "problem": "DMLC_ROLE is set by the operator, which replaces this value",
        "remedy": "remove it, or use another name",
        "severity": "warning"
      },
      {
        "column": 40,
        "field": "spec.mxReplicaSpecs.Worker.template.spec.containers[0].readinessProbe.httpGet.port",
        "file": "warned/training.yaml",
        "line": 33,
        "problem": "container \"mxnet\" has no port named \"health\"",
        "remedy": "use one of mxjob-port, or the port's number",
        "severity": "warning"
      },
      {
        "column": 45,
        "field": "spec.mxReplicaSpecs.Worker.template.spec.containers[1].lifecycle.preStop.httpGet.port",
        "file": "warned/training.yaml",
        "line": 38,
        "problem": "container \"tensorboard\" has no port named \"wbe\"",
        "remedy": "use one of web, or the port's number",
        "severity": "warning"
      },
      {
        "column": 16,
        "field": "spec.mxReplicaSpecs.Worker.template.spec.containers[1].volumeMounts[1].name",
        "file": "warned/training.yaml",
        "line": 41,
        "problem": "the pod has no volume \"lgos\"",
        "remedy": "use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes",
        "severity": "warning"
      },
      {
        "column": 29,
        "field": "spec.mxReplicaSpecs.Worker.template.spec.initContainers[0].volumeMounts[0].name",
        "file": "warned/training.yaml",
        "line": 45,
        "problem": "the pod has no volume \"data\"",
        "remedy": "use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes",
        "severity": "warning"
      }
    ],
    "goodJobs": 1,
    "warnings": 10
  }
  [1]
  $ training-operator validate bad/negative-replicas.yaml warned/training.yaml 'no/such file.yaml' --output sarif
  {
    "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
    "runs": [
      {
        "columnKind": "unicodeCodePoints",
        "results": [
          {
            "level": "error",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.Worker.replicas",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "bad/negative-replicas.yaml"
                  },
                  "region": {
                    "startColumn": 7,
                    "startLine": 10
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)"
            },
            "partialFingerprints": {
              "finding/v1": "bcabe53572c39709"
            },
            "ruleId": "error/spec.mxReplicaSpecs.Worker.replicas"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.runPolicy.ttlSecondsAfterFinished",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 5,
                    "startLine": 10
                  }
                }
              }
            ],
            "message": {
              "text": "spec.runPolicy.ttlSecondsAfterFinished: the job is kept for 600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately; set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods"
            },
            "partialFingerprints": {
              "finding/v1": "f634b1aa4a351b32"
            },
            "ruleId": "warning/spec.runPolicy.ttlSecondsAfterFinished"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.runPolicy.activeDeadlineSeconds",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 5,
                    "startLine": 11
                  }
                }
              }
            ],
            "message": {
              "text": "spec.runPolicy.activeDeadlineSeconds: 0 seconds fails the job as soon as the operator sees it; set the seconds that the job may take, or remove it for no limit"
            },
            "partialFingerprints": {
              "finding/v1": "face5e91ab5bbdc4"
            },
            "ruleId": "warning/spec.runPolicy.activeDeadlineSeconds"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.server",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 5,
                    "startLine": 13
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.server: servers cannot find workers without a scheduler; add a Scheduler with 1 replica, or remove the servers"
            },
            "partialFingerprints": {
              "finding/v1": "f018105b9c36a8dc"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.server"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.server.template.spec.restartPolicy",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 11,
                    "startLine": 17
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.server.template.spec.restartPolicy: Always has no effect, because the role's restartPolicy makes it Never; set spec.mxReplicaSpecs.server.restartPolicy instead, and remove this"
            },
            "partialFingerprints": {
              "finding/v1": "b371a711dd73089e"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.server.template.spec.restartPolicy"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.server.template.spec.containers[0].env[0].value",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 28,
                    "startLine": 22
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.server.template.spec.containers[0].env[0].value: $(DMLC_NUM_SERVER) stays as it is, because the operator sets DMLC_NUM_SERVER after this variable; use $(DMLC_NUM_SERVER) in command or args, where it is replaced"
            },
            "partialFingerprints": {
              "finding/v1": "d982bedaf8776472"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.server.template.spec.containers.env.value"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.server.template.spec.containers[0].env[1]",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 15,
                    "startLine": 23
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.server.template.spec.containers[0].env[1]: DMLC_ROLE is set by the operator, which replaces this value; remove it, or use another name"
            },
            "partialFingerprints": {
              "finding/v1": "41b25088e8124fa0"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.server.template.spec.containers.env"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.Worker.template.spec.containers[0].readinessProbe.httpGet.port",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 40,
                    "startLine": 33
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.Worker.template.spec.containers[0].readinessProbe.httpGet.port: container \"mxnet\" has no port named \"health\"; use one of mxjob-port, or the port's number"
            },
            "partialFingerprints": {
              "finding/v1": "e3dd88acc75ed756"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.Worker.template.spec.containers.readinessProbe.httpGet.port"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.Worker.template.spec.containers[1].lifecycle.preStop.httpGet.port",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 45,
                    "startLine": 38
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.Worker.template.spec.containers[1].lifecycle.preStop.httpGet.port: container \"tensorboard\" has no port named \"wbe\"; use one of web, or the port's number"
            },
            "partialFingerprints": {
              "finding/v1": "c0f7934849795345"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.Worker.template.spec.containers.lifecycle.preStop.httpGet.port"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.Worker.template.spec.containers[1].volumeMounts[1].name",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 16,
                    "startLine": 41
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.Worker.template.spec.containers[1].volumeMounts[1].name: the pod has no volume \"lgos\"; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes"
            },
            "partialFingerprints": {
              "finding/v1": "7aa9a6e48e56ac9c"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.Worker.template.spec.containers.volumeMounts.name"
          },
          {
            "level": "warning",
            "locations": [
              {
                "logicalLocations": [
                  {
                    "fullyQualifiedName": "spec.mxReplicaSpecs.Worker.template.spec.initContainers[0].volumeMounts[0].name",
                    "kind": "member"
                  }
                ],
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "warned/training.yaml"
                  },
                  "region": {
                    "startColumn": 29,
                    "startLine": 45
                  }
                }
              }
            ],
            "message": {
              "text": "spec.mxReplicaSpecs.Worker.template.spec.initContainers[0].volumeMounts[0].name: the pod has no volume \"data\"; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes"
            },
            "partialFingerprints": {
              "finding/v1": "fe7810b99d36d86d"
            },
            "ruleId": "warning/spec.mxReplicaSpecs.Worker.template.spec.initContainers.volumeMounts.name"
          },
          {
            "level": "error",
            "locations": [
              {
                "physicalLocation": {
                  "artifactLocation": {
                    "uri": "no/such%20file.yaml"
                  }
                }
              }
            ],
            "message": {
              "text": "no such file"
            },
            "partialFingerprints": {
              "finding/v1": "49e993f56b63896d"
            },
            "ruleId": "error/document"
          }
        ],
        "tool": {
          "driver": {
            "name": "training-operator",
            "rules": [
              {
                "defaultConfiguration": {
                  "level": "error"
                },
                "id": "error/document",
                "shortDescription": {
                  "text": "The operator rejects the job"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "error"
                },
                "id": "error/spec.mxReplicaSpecs.Worker.replicas",
                "shortDescription": {
                  "text": "The operator rejects the job"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.Worker.template.spec.containers.lifecycle.preStop.httpGet.port",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.Worker.template.spec.containers.readinessProbe.httpGet.port",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.Worker.template.spec.containers.volumeMounts.name",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.Worker.template.spec.initContainers.volumeMounts.name",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.server",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.server.template.spec.containers.env",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.server.template.spec.containers.env.value",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.mxReplicaSpecs.server.template.spec.restartPolicy",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.runPolicy.activeDeadlineSeconds",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              },
              {
                "defaultConfiguration": {
                  "level": "warning"
                },
                "id": "warning/spec.runPolicy.ttlSecondsAfterFinished",
                "shortDescription": {
                  "text": "The job is valid, but does not do what its author intends"
                }
              }
            ],
            "version": "0.1.0"
          }
        }
      }
    ],
    "version": "2.1.0"
  }
  [2]
  $ training-operator validate bad/negative-replicas.yaml warned/training.yaml --output github
  ::error file=bad/negative-replicas.yaml,line=10,col=7::spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)
  ::warning file=warned/training.yaml,line=10,col=5::spec.runPolicy.ttlSecondsAfterFinished: the job is kept for 600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately; set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods
  ::warning file=warned/training.yaml,line=11,col=5::spec.runPolicy.activeDeadlineSeconds: 0 seconds fails the job as soon as the operator sees it; set the seconds that the job may take, or remove it for no limit
  ::warning file=warned/training.yaml,line=13,col=5::spec.mxReplicaSpecs.server: servers cannot find workers without a scheduler; add a Scheduler with 1 replica, or remove the servers
  ::warning file=warned/training.yaml,line=17,col=11::spec.mxReplicaSpecs.server.template.spec.restartPolicy: Always has no effect, because the role's restartPolicy makes it Never; set spec.mxReplicaSpecs.server.restartPolicy instead, and remove this
  ::warning file=warned/training.yaml,line=22,col=28::spec.mxReplicaSpecs.server.template.spec.containers[0].env[0].value: $(DMLC_NUM_SERVER) stays as it is, because the operator sets DMLC_NUM_SERVER after this variable; use $(DMLC_NUM_SERVER) in command or args, where it is replaced
  ::warning file=warned/training.yaml,line=23,col=15::spec.mxReplicaSpecs.server.template.spec.containers[0].env[1]: DMLC_ROLE is set by the operator, which replaces this value; remove it, or use another name
  ::warning file=warned/training.yaml,line=33,col=40::spec.mxReplicaSpecs.Worker.template.spec.containers[0].readinessProbe.httpGet.port: container "mxnet" has no port named "health"; use one of mxjob-port, or the port's number
  ::warning file=warned/training.yaml,line=38,col=45::spec.mxReplicaSpecs.Worker.template.spec.containers[1].lifecycle.preStop.httpGet.port: container "tensorboard" has no port named "wbe"; use one of web, or the port's number
  ::warning file=warned/training.yaml,line=41,col=16::spec.mxReplicaSpecs.Worker.template.spec.containers[1].volumeMounts[1].name: the pod has no volume "lgos"; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes
  ::warning file=warned/training.yaml,line=45,col=29::spec.mxReplicaSpecs.Worker.template.spec.initContainers[0].volumeMounts[0].name: the pod has no volume "data"; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes
  [1]
  $ training-operator validate cases/single-worker.yaml bad/negative-replicas.yaml warned/training.yaml --output junit
  <?xml version="1.0" encoding="UTF-8"?>
  <testsuites>
  <testsuite name="training-operator validate" tests="3" failures="1">
  <testcase classname="training-operator" name="bad/negative-replicas.yaml">
  <failure message="spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)">bad/negative-replicas.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)</failure>
  </testcase>
  <testcase classname="training-operator" name="cases/single-worker.yaml"></testcase>
  <testcase classname="training-operator" name="warned/training.yaml"></testcase>
  </testsuite>
  </testsuites>
  [1]
  $ training-operator validate cases/single-worker.yaml warned/training.yaml --output junit --strict
  <?xml version="1.0" encoding="UTF-8"?>
  <testsuites>
  <testsuite name="training-operator validate" tests="2" failures="1">
  <testcase classname="training-operator" name="cases/single-worker.yaml"></testcase>
  <testcase classname="training-operator" name="warned/training.yaml">
  <failure message="spec.runPolicy.ttlSecondsAfterFinished: the job is kept for 600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately; set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods">warned/training.yaml:10:5: spec.runPolicy.ttlSecondsAfterFinished: the job is kept for 600 s after its end, but cleanPodPolicy All deletes its pods and their logs immediately; set cleanPodPolicy to Running to keep the logs of finished pods, or to None to keep all pods
  warned/training.yaml:11:5: spec.runPolicy.activeDeadlineSeconds: 0 seconds fails the job as soon as the operator sees it; set the seconds that the job may take, or remove it for no limit
  warned/training.yaml:13:5: spec.mxReplicaSpecs.server: servers cannot find workers without a scheduler; add a Scheduler with 1 replica, or remove the servers
  warned/training.yaml:17:11: spec.mxReplicaSpecs.server.template.spec.restartPolicy: Always has no effect, because the role's restartPolicy makes it Never; set spec.mxReplicaSpecs.server.restartPolicy instead, and remove this
  warned/training.yaml:22:28: spec.mxReplicaSpecs.server.template.spec.containers[0].env[0].value: $(DMLC_NUM_SERVER) stays as it is, because the operator sets DMLC_NUM_SERVER after this variable; use $(DMLC_NUM_SERVER) in command or args, where it is replaced
  warned/training.yaml:23:15: spec.mxReplicaSpecs.server.template.spec.containers[0].env[1]: DMLC_ROLE is set by the operator, which replaces this value; remove it, or use another name
  warned/training.yaml:33:40: spec.mxReplicaSpecs.Worker.template.spec.containers[0].readinessProbe.httpGet.port: container &quot;mxnet&quot; has no port named &quot;health&quot;; use one of mxjob-port, or the port's number
  warned/training.yaml:38:45: spec.mxReplicaSpecs.Worker.template.spec.containers[1].lifecycle.preStop.httpGet.port: container &quot;tensorboard&quot; has no port named &quot;wbe&quot;; use one of web, or the port's number
  warned/training.yaml:41:16: spec.mxReplicaSpecs.Worker.template.spec.containers[1].volumeMounts[1].name: the pod has no volume &quot;lgos&quot;; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes
  warned/training.yaml:45:29: spec.mxReplicaSpecs.Worker.template.spec.initContainers[0].volumeMounts[0].name: the pod has no volume &quot;data&quot;; use one of logs, or add it to spec.mxReplicaSpecs.Worker.template.spec.volumes</failure>
  </testcase>
  </testsuite>
  </testsuites>
  [1]

A directory may contain anything: a chart, patches, files of other programs, and large files.

  $ mkdir -p repository/{jobs,overlays/prod,chart/templates,.github/workflows}
  $ cd repository
  $ cp ../cases/single-worker.yaml jobs/a.yaml
  $ echo 'resources: [jobs/a.yaml]' > kustomization.yaml
  $ printf 'resources: [../..]\npatches: [{path: more-workers.yaml}]\n' > overlays/prod/kustomization.yaml
  $ cat > overlays/prod/more-workers.yaml <<END
  > apiVersion: kubeflow.org/v1
  > kind: MXJob
  > metadata: {name: single}
  > spec: {mxReplicaSpecs: {Worker: {replicas: 3}}}
  > END
  $ printf 'apiVersion: v2\nname: jobs\n' > chart/Chart.yaml
  $ echo 'workers: 3' > chart/values.yaml
  $ printf -- '- a\n- b\n' > chart/list.yaml
  $ sed 's/name: /&{{ .Release.Name }}-/' jobs/a.yaml > chart/templates/job.yaml
  $ printf 'on: [push]\njobs: {}\n' > .github/workflows/ci.yaml
  $ truncate --size 1G data.json
  $ training-operator validate .
  ./chart/templates/job.yaml:5:10: note: looks like a template and is skipped; render it first, for example: helm template . | training-operator validate -
  ./data.json: note: has more than 64 MiB and is skipped
  ./overlays/prod/more-workers.yaml: note: is a patch of a kustomization and is skipped; check the result: kustomize build ./overlays/prod | training-operator validate -
  .: note: 5 files have no training job and are skipped
  1 valid job, 0 errors, 0 warnings

A file that the user names is meant to be a job.

  $ training-operator validate chart/templates/job.yaml
  chart/templates/job.yaml:5:10: a key must be a string; looks like a template: render it first, for example: helm template . | training-operator validate -
  0 valid jobs, 1 error, 0 warnings
  [1]

pre-commit passes the files that changed, and no directory. A patch is skipped with the command that checks its result.

  $ training-operator validate overlays/prod/more-workers.yaml
  overlays/prod/more-workers.yaml: note: is a patch of a kustomization and is skipped; check the result: kustomize build overlays/prod | training-operator validate -
  0 valid jobs, 0 errors, 0 warnings
  $ training-operator explain overlays/prod/more-workers.yaml
  ! overlays/prod/more-workers.yaml: note: is a patch of a kustomization and is skipped; check the result: kustomize build overlays/prod | training-operator validate -
  ! overlays/prod/more-workers.yaml: no training job found; check what kustomize makes: kustomize build overlays/prod | training-operator validate -
  [2]
  $ training-operator validate overlays
  overlays/prod/more-workers.yaml: note: is a patch of a kustomization and is skipped; check the result: kustomize build overlays/prod | training-operator validate -
  overlays: warning: no training job found; check what kustomize makes: kustomize build overlays/prod | training-operator validate -
  overlays: note: 1 file has no training job and is skipped
  0 valid jobs, 0 errors, 1 warning

Errors in a repository are found.

  $ mkdir more
  $ sed 's/kind: MXJob/&s/' jobs/a.yaml > more/typo.yaml
  $ cp jobs/a.yaml more/copy.yaml
  $ sed 's/metadata:/&\n  namespace: Team_A/' jobs/a.yaml > more/place.yaml
  $ sed 's/    Worker:/&\n      replicas: "${WORKERS}"/' jobs/a.yaml > more/variable.yaml
  $ sed '/kind: MXJob/d' jobs/a.yaml > more/part.yaml
  $ training-operator validate .
  ./chart/templates/job.yaml:5:10: note: looks like a template and is skipped; render it first, for example: helm template . | training-operator validate -
  ./data.json: note: has more than 64 MiB and is skipped
  ./more/copy.yaml:5:3: warning: metadata.name: single is also the name of the job at ./jobs/a.yaml:2; use another name or namespace if both are applied to one cluster
  ./more/part.yaml:2:1: kind: must be a non-empty string; set the kind of the object
  ./more/place.yaml:5:3: metadata.namespace: must be a valid name of a namespace (is "Team_A"); use at most 63 lower-case letters, digits and '-', such as team-a
  ./more/typo.yaml:3:1: kind: unknown kind "MXJobs" of kubeflow.org; did you mean MXJob?
  ./more/variable.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be an integer (is "${WORKERS}"); replace the variable first, for example with envsubst
  ./overlays/prod/more-workers.yaml: note: is a patch of a kustomization and is skipped; check the result: kustomize build ./overlays/prod | training-operator validate -
  .: note: 5 files have no training job and are skipped
  2 valid jobs, 4 errors, 1 warning
  [1]
  $ training-operator validate . --exclude 'more/**' | tail -1
  1 valid job, 0 errors, 0 warnings
