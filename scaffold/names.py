"""Which names a layer, a weight and an argument may have, and why not the others.

Every refusal names the value, the flag that it came by and a name that would work.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys

from scaffold.errors import MplayerError

LONGEST_CLASS = 48
LONGEST_NAME = 24

# The public attributes of `tf.keras.layers.Layer` in TF 2.12 and 2.15 (Keras 2), in
# tf_keras 2.21 and in Keras 3.15. A weight of such a name would replace, or be refused
# by, the base layer's own.
LAYER_ATTRIBUTES = frozenset(
    """
    activity_regularizer add_loss add_metric add_update add_variable add_weight autocast
    build build_from_config built call call_signature_parameters compute_dtype
    compute_mask compute_output_shape compute_output_signature compute_output_spec
    count_params dtype dtype_policy dynamic finalize_state from_config get_build_config
    get_config get_input_at get_input_mask_at get_input_shape_at get_output_at
    get_output_mask_at get_output_shape_at get_weights inbound_nodes input input_dtype
    input_mask input_shape input_spec load_own_variables losses metrics
    metrics_variables name name_scope non_trainable_variables non_trainable_weights
    outbound_nodes output output_mask output_shape path quantization_mode quantize
    quantized_build quantized_call rematerialized_call save_own_variables set_weights
    stateful stateless_call submodules supports_jit supports_masking symbolic_call
    trainable trainable_variables trainable_weights updates variable_dtype variables
    weights with_name_scope
    """.split()  # noqa: SIM905 -- a paragraph reads better than a column
)

# Keyword arguments that some base `__init__` takes for itself.
LAYER_ARGUMENTS = frozenset(
    """
    activity_regularizer autocast batch_input_shape batch_shape batch_size dtype dynamic
    experimental_autocast implementation input_dim input_dtype input_length input_shape
    name sparse trainable weights
    """.split()  # noqa: SIM905 -- a paragraph reads better than a column
)

# What the generated module and its tests call their own.
MODULE_NAMES = frozenset(
    """
    annotations args axis batch batch_axis cls config functools inspect inputs
    inputs_shape keras kwargs layer mask np outputs pytest result self shape tf training
    """.split()  # noqa: SIM905 -- a paragraph reads better than a column
)
CLASS_NAMES = frozenset(
    """
    Any Callable Iterator Layer Model Module NamedTuple Path Policy Run Sequence
    Sequential Tensor Tensors Variable
    """.split()  # noqa: SIM905 -- a paragraph reads better than a column
)

# What a module of the same name in the current folder would hide: packages that
# TensorFlow, Keras or pytest import, and standard modules of other Pythons.
IMPORTED_MODULES = frozenset(
    """
    absl array_api_compat astunparse asynchat asyncore attr attrs autocommand backports
    certifi cffi charset_normalizer clang cloudpickle coverage cryptography cycler
    dateutil distutils dm_tree execnet flatbuffers gast google grpc h5py hypothesis idna
    imp importlib_metadata importlib_resources inflect iniconfig jaraco jax jaxlib
    jinja2 joblib keras keras_core kiwisolver libclang markdown markupsafe matplotlib
    ml_dtypes more_itertools mpmath mypy namex numpy oauthlib onnx openvino opt_einsum
    optree packaging pandas pasta pil pip pkg_resources platformdirs pluggy protobuf
    psutil py pyasn1 pycparser pydot pygments pyparsing pytest pytz requests rich
    scaffold scipy setuptools six sklearn smtpd sortedcontainers sympy tensorboard
    tensorflow tensorflow_estimator tensorstore termcolor tf2onnx tf_keras tomli tomllib
    torch torchgen torchvision tornado tqdm tree typeguard typing_extensions tzdata
    urllib3 werkzeug wheel wrapt xdist yaml zipp
    """.split()  # noqa: SIM905 -- a paragraph reads better than a column
)
# Files that other tools read by name.
TOOL_MODULES = frozenset({"conftest", "noxfile", "setup", "sitecustomize", "tests"})
DEVICE_NAMES = frozenset(
    {"aux", "con", "nul", "prn"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
)

# Letters that look like ASCII ones, and the ASCII ones.
_LOOK_ALIKES = str.maketrans(
    "авекмнорстухѕіјԁԛԝАВЕКМНОРСТХЅІЈαβορνικχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "abekmhopctyxsijdqwABEKMHOPCTXSIJaBopvikxABEZHIKMNOPTYX",
)


def require_ascii(text: str, flag: str) -> None:
    """Refuses a character outside ASCII, by its name and with what it looks like.

    Raises:
        MplayerError: If there is one.
    """
    position = next((i for i, x in enumerate(text) if not x.isascii()), None)
    if position is None:
        return
    import unicodedata

    character = text[position]
    name = unicodedata.name(character, "a character without a name")
    twin = unicodedata.normalize("NFKC", character).translate(_LOOK_ALIKES)
    way_out = (
        f"Write {twin!r} in its place."
        if twin.isascii() and twin.isprintable()
        else "Use ASCII letters, digits and underscores."
    )
    raise MplayerError(
        f"{flag}: {character!r} in {text!r} is {name} (U+{ord(character):04X}). "
        f"{way_out}"
    )


def camel_case(text: str) -> str:
    """Returns `MyLayer` for `my_layer`, `my-layer` and `my layer`."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    joined = "".join(word[0].upper() + word[1:] for word in words)
    return joined.lstrip("0123456789")[:LONGEST_CLASS] or "MyLayer"


def snake_case(text: str) -> str:
    """Returns `weight_matrix` for `weightMatrix`, `Weight-Matrix` and `_weightMatrix`.

    It is a suggestion: it may be a name that is refused for another reason.
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_0123456789")


def module_name(class_name: str) -> str:
    """Returns `my_layer` for `MyLayer`, as `LayerSpec.module` does."""
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", class_name)
    joints = r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])"
    return re.sub(joints, "_", words).lower()


def parse_name(text: str) -> str:
    """Returns the class name in `text`.

    Raises:
        MplayerError: If a layer cannot have this name.
    """
    name = text.strip()
    require_ascii(name, "NAME")
    reason = _class_fault(name)
    if not reason:
        return name
    camel = camel_case(name)
    layer = f"My{camel}" if camel.endswith("Layer") else f"{camel}Layer"
    for offer in (camel, layer, f"My{camel}", "MyLayer"):
        if not _class_fault(offer):
            break
    shown = name if len(name) <= 2 * LONGEST_CLASS else f"{name[:LONGEST_CLASS]}..."
    raise MplayerError(f"NAME: {shown!r} {reason}. Use a name such as {offer}.")


def _class_fault(name: str) -> str:
    """Returns why a layer cannot be called so, or an empty string."""
    module = module_name(name)
    faults = (
        (not name, "is empty"),
        (
            keyword.iskeyword(name) or hasattr(builtins, name),
            "is a word of Python's own",
        ),
        (name.startswith("__"), "is a name that Python keeps for itself"),
        (
            not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name),
            "is not a class name: a capital first, then letters and digits",
        ),
        (len(name) > LONGEST_CLASS, f"has more than {LONGEST_CLASS} characters"),
        (name in CLASS_NAMES, "would hide a class that the module or its tests use"),
        (name.startswith("Test"), "would be collected by pytest as a class of tests"),
        (
            keyword.iskeyword(module),
            f"would be written to {module}.py, a word of Python's own to import",
        ),
        (
            module in sys.stdlib_module_names,
            f"would be written to {module}.py, which hides Python's own module",
        ),
        (
            module in IMPORTED_MODULES,
            f"would be written to {module}.py, which hides the package {module}",
        ),
        (
            module in TOOL_MODULES or module.startswith("test_"),
            f"would be written to {module}.py, which other tools read as their own",
        ),
        (
            module in DEVICE_NAMES,
            f"would be written to {module}.py, which is a device on Windows",
        ),
    )
    return next((reason for wrong, reason in faults if wrong), "")


def require_distribution_name(text: str) -> str:
    """Returns the name of a distribution, and so of its repository: `acme-layers`.

    Raises:
        MplayerError: If it is none by the rules of Python's packaging.
    """
    name = text.strip()
    require_ascii(name, "NAME")
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([._-][A-Za-z0-9]+)*", name):
        fault = ""
        if len(name) > LONGEST_CLASS:
            fault = f"has more than {LONGEST_CLASS} characters"
        elif name.lower() in DEVICE_NAMES:
            fault = "is a device on Windows"
    else:
        fault = (
            "is no name of a distribution: letters and digits, with single '-', '_' or"
            " '.' between them"
        )
    if fault:
        raise MplayerError(f"NAME: {text!r} {fault}. Use a name such as 'acme-layers'.")
    return name


def require_package_name(text: str) -> str:
    """Returns the name of a package that hides no other: `acme_layers`.

    Raises:
        MplayerError: If a package cannot be called so.
    """
    name = text.strip()
    require_ascii(name, "--package")
    faults = (
        (
            not re.fullmatch(r"[a-z][a-z0-9_]*", name),
            "is no name of a package: small letters, digits and '_'",
        ),
        (len(name) > LONGEST_CLASS, f"has more than {LONGEST_CLASS} characters"),
        (keyword.iskeyword(name), "is a word of Python's own"),
        (name in sys.stdlib_module_names, "would hide Python's own module"),
        (name in IMPORTED_MODULES, "would hide the package of that name"),
        (
            name in TOOL_MODULES or name == "test" or name.startswith("test_"),
            "is what other tools read as their own",
        ),
        (name in DEVICE_NAMES, "is a device on Windows"),
    )
    fault = next((reason for wrong, reason in faults if wrong), "")
    if fault:
        raise MplayerError(
            f"--package: {text!r} {fault}. Use a name such as 'acme_layers'."
        )
    return name


def require_variable_name(name: str, flag: str, what: str) -> None:
    """Refuses a name that a weight or an argument cannot have.

    `what` is "weight" or "argument".

    Raises:
        MplayerError: If it cannot have this name.
    """
    require_ascii(name, flag)
    reason = variable_fault(name)
    if not reason:
        return
    snake = snake_case(name)[: LONGEST_NAME - len(what) - 1].rstrip("_")
    standard = ["kernel", "scale"] if what == "weight" else ["units", "rate"]
    offers = [*([] if name == "weights" else [snake, f"{snake}_{what}"]), *standard]
    offer = next(x for x in offers if not variable_fault(x))
    raise MplayerError(f"{flag}: {name!r} {reason}. Use a name such as {offer!r}.")


def variable_fault(name: str) -> str:
    """Returns why a weight or argument cannot be called so, or an empty string."""
    faults = (
        (not name, "is empty"),
        (name == "in", "stands for the last axis of the inputs"),
        (
            keyword.iskeyword(name) or keyword.issoftkeyword(name),
            "is a keyword of Python",
        ),
        (
            not re.fullmatch(r"[a-z][a-z0-9_]*", name),
            "is not a name: a small letter first, then small letters, digits and _",
        ),
        (len(name) > LONGEST_NAME, f"has more than {LONGEST_NAME} characters"),
        (
            name in LAYER_ATTRIBUTES,
            "is a name that the base layer of some Keras owns",
        ),
        (name in LAYER_ARGUMENTS, "is an argument of the base layer of some Keras"),
        (name in MODULE_NAMES, "is a name that the generated code uses itself"),
        (hasattr(builtins, name), "would hide a builtin of Python"),
        (
            name == "l",
            "is hard to tell from 1 and I (ruff E741)",
        ),
        (
            re.fullmatch(r"axis_\d+", name) is not None,
            "stands for an axis of the inputs",
        ),
        (name.startswith(("test_", "get_")), "reads as a test or a method"),
    )
    return next((reason for wrong, reason in faults if wrong), "")
