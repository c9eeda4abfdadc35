//! The forms in which frameworks print steps and losses. The lines with versions are from runs of these versions.

use training_job::output::{Numbers, OutputRecord};

fn read(line: &str) -> Numbers {
    let mut record = OutputRecord::default();
    record.add(&format!("2026-01-01T00:00:00Z {line}"), None);
    record.numbers
}

#[test]
fn the_forms_of_frameworks_have_numbers() {
    let numbers = |step: f64, total: Option<f64>, loss: Option<f64>| Numbers {
        step: Some(step),
        total,
        loss,
    };
    for (line, expected) in [
        // Assignments, and the words of many loops.
        ("step=120 loss=0.53", numbers(120.0, None, Some(0.53))),
        (
            "step 120/1000 loss: 0.53",
            numbers(120.0, Some(1_000.0), Some(0.53)),
        ),
        ("epoch 3/10", numbers(3.0, Some(10.0), None)),
        ("epoch 2, step 30: loss 1.5", numbers(30.0, None, None)),
        // tqdm, alone and in Lightning.
        (
            " 45%|████▌     | 45/100 [00:12<00:15,  3.61it/s, loss=0.3]",
            numbers(45.0, Some(100.0), Some(0.3)),
        ),
        (
            "Epoch 3:  45%|███  | 45/100 [00:12<00:15, 3.61it/s, v_num=0, train_loss=0.31]",
            numbers(45.0, Some(100.0), Some(0.31)),
        ),
        // Keras 3 and 2.
        (
            "45/100 ━━━━━━━━━━━━━━━━━━━━ 12s 3ms/step - accuracy: 0.91 - loss: 0.31",
            numbers(45.0, Some(100.0), Some(0.31)),
        ),
        ("Epoch 3/10", numbers(3.0, Some(10.0), None)),
        (
            " 45/100 [======>.............] - ETA: 3s - loss: 0.3120 - accuracy: 0.91",
            numbers(45.0, Some(100.0), Some(0.312)),
        ),
        // MXNet.
        (
            "INFO:root:Epoch[3] Batch [20]\tSpeed: 1000.50 samples/sec\taccuracy=0.93",
            numbers(20.0, None, None),
        ),
        ("Epoch[0] Train-accuracy=0.5", numbers(0.0, None, None)),
        // The examples of PyTorch and Horovod, which is started by mpirun --tag-output.
        (
            "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300123",
            numbers(640.0, Some(60_000.0), Some(2.300_123)),
        ),
        (
            "[1,0]<stdout>:Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.3",
            numbers(640.0, Some(60_000.0), Some(2.3)),
        ),
        (
            "Epoch: [0][ 10/391]\tTime  0.1 ( 0.2)\tLoss 6.9 (6.9)",
            numbers(10.0, Some(391.0), None),
        ),
        // JSON lines, and the Trainer of Hugging Face.
        (
            r#"{"step": 100, "loss": 0.31, "lr": 1e-4}"#,
            numbers(100.0, None, Some(0.31)),
        ),
        (
            "{'loss': 0.31, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.5}",
            numbers(0.5, None, Some(0.31)),
        ),
        // XGBoost.
        ("[12]\ttrain-rmse:0.31\teval-rmse:0.4", numbers(12.0, None, None)),
        // Estimators, Megatron, Paddle.
        (
            "INFO:absl:loss = 0.31, step = 100 (2.3 sec)",
            numbers(100.0, None, Some(0.31)),
        ),
        (
            " iteration       10/     100 | consumed samples:  640 | lm loss: 3.1E+00 |",
            numbers(10.0, Some(100.0), Some(3.1)),
        ),
        (
            "step 10/100 - loss: 0.3000 - acc: 0.9 - 12ms/step",
            numbers(10.0, Some(100.0), Some(0.3)),
        ),
        // Real lines of tqdm 4.70, Lightning 2.6 and the Trainer of Hugging Face (transformers), without a terminal.
        (
            "100%|█████████▉| 6580/6600 [05:33<00:01, 19.81it/s, loss=0.000152]",
            numbers(6_580.0, Some(6_600.0), Some(0.000_152)),
        ),
        (
            "Epoch 1:  88%|████████▊ | 7/8 [00:00<00:00, 350.95it/s, train_loss=0.152, val_loss=0.100]",
            numbers(7.0, Some(8.0), Some(0.152)),
        ),
        (
            "Validation DataLoader 0:  12%|█▎        | 1/8 [00:00<00:00, 881.90it/s]\u{1b}[A",
            numbers(1.0, Some(8.0), None),
        ),
        (
            "{'loss': '1.018', 'grad_norm': '2.715', 'learning_rate': '4.063e-05', 'epoch': '0.5'}",
            numbers(0.5, None, Some(1.018)),
        ),
        // Keras 3.15 prints colours to a file as well.
        (
            "\u{1b}[1m 8/10\u{1b}[0m \u{1b}[32m━━━━━━━━━━━━━━━━\u{1b}[0m\u{1b}[37m━━━━\u{1b}[0m \u{1b}[1m0s\u{1b}[0m 8ms/step - loss: 0.5247 - mae: 0.6084 \u{8}\u{8}",
            numbers(8.0, Some(10.0), Some(0.524_7)),
        ),
        (
            "10/10 - 0s - 9ms/step - loss: 0.2529 - mae: 0.4094",
            numbers(10.0, Some(10.0), Some(0.252_9)),
        ),
        // MXNet 1.9.
        (
            "INFO:root:Epoch[0] Batch [20-40]\tSpeed: 14993.98 samples/sec\taccuracy=0.477500",
            numbers(40.0, None, None),
        ),
        ("INFO:root:Epoch[0] Time cost=0.172", numbers(0.0, None, None)),
        // Paddle 3.3.
        (
            "step  2/10 - loss: 0.6337 - acc: 0.6562 - 27ms/step",
            numbers(2.0, Some(10.0), Some(0.633_7)),
        ),
        (
            "step 10/10 [==============================] - loss: 0.6837 - acc: 0.5156 - 2ms/step",
            numbers(10.0, Some(10.0), Some(0.683_7)),
        ),
        // XGBoost 3.2, alone and by its tracker, as in a job of several ranks.
        (
            "[11]\ttrain-logloss:0.64057\ttrain-auc:0.73415\teval-logloss:0.64057",
            numbers(11.0, None, Some(0.640_57)),
        ),
        (
            "[21:38:07] [10]\ttrain-logloss:0.06137",
            numbers(10.0, None, Some(0.061_37)),
        ),
        // mpirun --output tag of Open MPI 5.
        (
            "[1,1]<stdout>: Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300123",
            numbers(640.0, Some(60_000.0), Some(2.300_123)),
        ),
        (
            "[1,1]<stdout>: 45/100 - 0s - loss: 0.5",
            numbers(45.0, Some(100.0), Some(0.5)),
        ),
        (
            "[Sun Nov 29 21:25:17 2026][1,1]<stdout>: [12]\ttrain-rmse:0.31",
            numbers(12.0, None, None),
        ),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn other_lines_have_no_step() {
    for line in [
        "",
        "Loading data from /data/2024/01/02",
        "2024/01/02 12:00:00 connected",
        "downloading 12/13",
        "[rank0]: waiting",
        "loss=0.5",
        "step one",
        "[1] + running",
        "11/29 21:00:00 - INFO - began",
        "[21:38:07] Task 000000 got rank 0",
        "\u{1b}[A",
    ] {
        assert_eq!(read(line).step, None, "{line}");
    }
}
