"""Models of others, and runs of ours as models: what they keep, and how far they look.

What a model is, without its weights:

* `folder` finds what lies at a place, and hands it to `configuration` (a folder of the library
  transformers), `gguf_files` or `finished_run`. Each gives an `outline` of the layers;
* `observed` runs the library's own code without weights, and `biases` adds ALiBi and T5's tables;
* `audit` says what may be set, with `cache` for bytes and `head_audit` for the heads of a bias.

What a model does:

* `weights` reads tensors, `opened` opens a model and shows it fewer keys, `streamed` reads one that
  does not fit into memory, and `text` has the text in its tokens;
* `perplexities`, `empirical` and `smallest_window` measure;
* `network` is a model as the far field needs it, with softmax over several sets of keys by
  `joined_attention`. `library_network` makes one of a model of the library, `content_bias` has
  biases that depend on what is read, and `repairs` are changes.
"""
