"""Direct logit attribution: what each part of a pre-norm model adds to a logit, with the final norm's scale held fixed."""

from typing import Any, Dict, List, NamedTuple

from ._server import needed


class Attribution(NamedTuple):
    """values (B, T, parts), or (B, parts) of a model with an output for each sequence, which sum to the logits, and names."""

    values: Any
    parts: List[str]


def attribute(model: Any, cache: Any, token: Any) -> Attribution:
    np, config = needed("numpy", "arrays"), model.config["model"]
    stack = "" if config["kind"] == "encoder" else "decoder."
    for is_so, what, remedy in ((config["kind"] == "recurrent", "recurrent", ""),
                                (config["norm"] != "pre", "post-norm", "; train with model.norm pre"),
                                (config["output"]["hidden"] > 0, "two-layer output net", "; train with model.output.hidden 0")):
        if is_so:
            raise ValueError(f"{what}: logits are not a sum of parts{remedy}")
    last = cache[f"{stack}blocks.{config['layers'] - 1}.hook_resid_post"].astype("f8")
    pooling = config["output"]["pooling"] if config["output"]["per"] == "sequence" else None
    ids = np.broadcast_to(model._outputs(token), last.shape[:1 if pooling else 2])
    unembed, norm = model.W_U.T.astype("f8")[ids], f"{stack or 'encoder.'}norm."
    weight, bias, of_output = (model._vector(name) for name in (f"{norm}weight", f"{norm}bias", "output.bias"))
    x, direction = last, unembed if weight is None else unembed * weight
    if config["norm_final"] and config["norm_type"] == "layer":
        x, direction = (v - v.mean(-1, keepdims=True) for v in (x, direction))
    direction = direction[:, None] if pooling else direction
    if config["norm_final"]:
        direction = direction / np.sqrt((x ** 2).mean(-1, keepdims=True) + config["norm_epsilon"])

    parts = _parts(model, cache, config, stack)
    values = [(part * direction).sum(-1) for part in parts.values()]
    if pooling:
        ends = np.arange(len(last)), (~np.isnan(last[..., 0])).sum(1) - 1
        values = [np.nanmean(v, 1) if pooling == "mean" else v[:, 0] if pooling == "first" else v[ends] for v in values]
    constants = {} if bias is None else {"final norm bias": unembed @ bias}
    constants.update({} if of_output is None else {"output bias": of_output[ids]})
    stacked = np.stack([*values, *constants.values()], -1)
    known = ~np.isnan(stacked).any(-1, keepdims=True) & (ids >= 0)[..., None]
    logits = np.take_along_axis(cache.logits, np.maximum(ids, 0)[..., None], -1)
    allowed = 100 * np.finfo(logits.dtype).eps * abs(stacked).sum(-1, keepdims=True)
    if (known & (abs(stacked.sum(-1, keepdims=True) - logits) > allowed)).any():
        raise ValueError("the parts do not add up to the logits: the residual stream, or what follows it, was replaced")
    return Attribution(np.where(known, stacked, np.nan), [*parts, *constants])


def _parts(model: Any, cache: Any, config: Any, stack: str) -> Dict[str, Any]:
    """What is added up in the residual stream, by name."""
    parts = {"embedding": cache[f"{stack}blocks.0.hook_resid_pre"].astype("f8")}
    if config["positions"] in ("learned", "sinusoidal") and not config["norm_embedding"]:
        token = cache[f"{stack}hook_embed"]
        parts = {"token embedding": token, "position embedding": parts["embedding"] - token}
    sites = {site["name"] for site in model.sites}
    for layer in range(config["layers"]):
        at, weights = f"{stack}blocks.{layer}.", f"{stack or 'encoder.'}layers.{layer}."
        for site, name, of, module in (("attn", "attention", stack, f"{weights}self_attn."),
                                       ("cross", "cross-attention", "cross.", f"{weights}multihead_attn.")):
            if f"{at}{site}.hook_z" in sites:
                z, bias = cache[f"{at}{site}.hook_z"].astype("f8"), model._vector(f"{module}out_proj.bias")
                matrices = model._head_outputs(module, *z.shape[2:])
                parts.update({f"head {of}{layer}.{h}": z[:, :, h] @ matrix for h, matrix in enumerate(matrices)})
                parts.update({} if bias is None else {f"layer {layer} {name} bias": bias})
            elif f"{at}hook_{site}_out" in sites:
                parts[f"layer {layer} {config['mixer']}"] = cache[f"{at}hook_{site}_out"]
        if f"{at}hook_mlp_out" in sites:
            parts[f"layer {layer} feed-forward"] = cache[f"{at}hook_mlp_out"]
    return parts
