# SPDX-License-Identifier: Apache-2.0
"""doc/jvmti.md names every function and event of JVM TI 9, and what it says about the sources is
true.
"""
import re

import lab

FUNCTIONS = """
    Allocate Deallocate GetThreadState GetCurrentThread GetAllThreads SuspendThread SuspendThreadList ResumeThread
    ResumeThreadList StopThread InterruptThread GetThreadInfo GetOwnedMonitorInfo GetOwnedMonitorStackDepthInfo
    GetCurrentContendedMonitor RunAgentThread SetThreadLocalStorage GetThreadLocalStorage GetTopThreadGroups
    GetThreadGroupInfo GetThreadGroupChildren GetStackTrace GetAllStackTraces GetThreadListStackTraces GetFrameCount
    PopFrame GetFrameLocation NotifyFramePop ForceEarlyReturnObject ForceEarlyReturnInt ForceEarlyReturnLong
    ForceEarlyReturnFloat ForceEarlyReturnDouble ForceEarlyReturnVoid FollowReferences IterateThroughHeap GetTag SetTag
    GetObjectsWithTags ForceGarbageCollection IterateOverObjectsReachableFromObject IterateOverReachableObjects
    IterateOverHeap IterateOverInstancesOfClass GetLocalObject GetLocalInstance GetLocalInt GetLocalLong GetLocalFloat
    GetLocalDouble SetLocalObject SetLocalInt SetLocalLong SetLocalFloat SetLocalDouble SetBreakpoint ClearBreakpoint
    SetFieldAccessWatch ClearFieldAccessWatch SetFieldModificationWatch ClearFieldModificationWatch GetAllModules
    GetNamedModule AddModuleReads AddModuleExports AddModuleOpens AddModuleUses AddModuleProvides IsModifiableModule
    GetLoadedClasses GetClassLoaderClasses GetClassSignature GetClassStatus GetSourceFileName GetClassModifiers
    GetClassMethods GetClassFields GetImplementedInterfaces GetClassVersionNumbers GetConstantPool IsInterface IsArrayClass
    IsModifiableClass GetClassLoader GetSourceDebugExtension RetransformClasses RedefineClasses GetObjectSize
    GetObjectHashCode GetObjectMonitorUsage GetFieldName GetFieldDeclaringClass GetFieldModifiers IsFieldSynthetic
    GetMethodName GetMethodDeclaringClass GetMethodModifiers GetMaxLocals GetArgumentsSize GetLineNumberTable
    GetMethodLocation GetLocalVariableTable GetBytecodes IsMethodNative IsMethodSynthetic IsMethodObsolete
    SetNativeMethodPrefix SetNativeMethodPrefixes CreateRawMonitor DestroyRawMonitor RawMonitorEnter RawMonitorExit
    RawMonitorWait RawMonitorNotify RawMonitorNotifyAll SetJNIFunctionTable GetJNIFunctionTable SetEventCallbacks
    SetEventNotificationMode GenerateEvents GetExtensionFunctions GetExtensionEvents SetExtensionEventCallback
    GetPotentialCapabilities AddCapabilities RelinquishCapabilities GetCapabilities GetCurrentThreadCpuTimerInfo
    GetCurrentThreadCpuTime GetThreadCpuTimerInfo GetThreadCpuTime GetTimerInfo GetTime GetAvailableProcessors
    AddToBootstrapClassLoaderSearch AddToSystemClassLoaderSearch GetSystemProperties GetSystemProperty SetSystemProperty
    GetPhase DisposeEnvironment SetEnvironmentLocalStorage GetEnvironmentLocalStorage GetVersionNumber GetErrorName
    SetVerboseFlag GetJLocationFormat
""".split()
EVENTS = """
    VMInit VMStart VMDeath ThreadStart ThreadEnd ClassFileLoadHook ClassLoad ClassPrepare Exception ExceptionCatch
    SingleStep FramePop Breakpoint FieldAccess FieldModification MethodEntry MethodExit NativeMethodBind CompiledMethodLoad
    CompiledMethodUnload DynamicCodeGenerated DataDumpRequest MonitorContendedEnter MonitorContendedEntered MonitorWait
    MonitorWaited ResourceExhausted VMObjectAlloc ObjectFree GarbageCollectionStart GarbageCollectionFinish
""".split()
DOC = (lab.ROOT / "doc" / "jvmti.md").read_text()
SOURCES = {
    str(p.relative_to(lab.ROOT)): p.read_text() for p in sorted((lab.ROOT / "src").rglob("*.c"))
}


def rows(section):
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", DOC, re.M | re.S)[1]
    return dict(re.findall(r"^\| (\w+) \| (.*) \|$", text, re.M))


def check(names, found, used_by):
    assert set(found) - {"function", "event"} == set(names)
    for name in names:
        users = {path for path, text in SOURCES.items() if used_by(name, text)}
        printed = re.findall(r"`(src/[^`]+)`", found[name])
        if printed:
            assert not found[name].startswith("not used") and set(printed) <= users, name
        else:
            assert re.match(r"not used: .{10,}", found[name]), name


def test_functions():
    assert len(FUNCTIONS) == 147
    check(FUNCTIONS, rows("Functions"), lambda name, text: re.search(rf"\)->{name}\(", text))


def test_events():
    assert len(EVENTS) == 31
    check(
        EVENTS,
        rows("Events"),
        lambda name, text: "#define COUNTED" not in text
        and re.search(rf"\.(ti\.)?{name} = ", text),
    )
